"""What follows from a job's settings. Pure."""

"""The job folder: what is read from it, and what follows from its settings alone."""

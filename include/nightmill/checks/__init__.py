"""What an answer or an input must be."""

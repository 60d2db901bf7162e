"""Finds every mistake of a job folder, with its file and line."""

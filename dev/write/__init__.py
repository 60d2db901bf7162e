"""Writes pages of docs/ from the code."""

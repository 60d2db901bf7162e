"""prompt.md: its template, limits and messages."""

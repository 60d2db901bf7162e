"""output.py: the model of an answer, its JSON schema and its columns."""

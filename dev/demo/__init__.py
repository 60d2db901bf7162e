"""The demo's documents and its run."""

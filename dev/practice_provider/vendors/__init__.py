"""The vendors that the simulator speaks like: one folder each, with its routes, its words and its lines."""

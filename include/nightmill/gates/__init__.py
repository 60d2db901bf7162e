"""What stands between a settled batch and its readers: one module per gate, and one driver for all of them."""

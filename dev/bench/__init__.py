"""What nightmill costs per item: `make bench`."""

"""What `make lint` checks beyond well-known tools."""

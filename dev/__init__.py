"""What only a checkout needs: the practice provider, the local stack, the demo, benchmarks, writers of docs."""

"""What job.yaml may say."""

"""Pages of Airflow's API server that show what a batch or a shard does, and why it waits. They change nothing."""

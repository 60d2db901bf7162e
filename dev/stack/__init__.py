"""The local stack: Postgres, Airflow and the practice provider on one machine."""

"""Offline LLM work as recoverable, auditable batch jobs on Apache Airflow."""

__version__ = "0.1.0"

"""Holds no DAG: its import error in Airflow lists the job folders that are broken, and their mistakes."""

from pathlib import Path

from nightmill.orchestration.dag_factory import refuse_broken_jobs

refuse_broken_jobs(Path(__file__).parent / "jobs")

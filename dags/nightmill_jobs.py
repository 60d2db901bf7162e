"""One Airflow DAG per job folder: jobs/ beside this file, and every folder of NIGHTMILL_JOBS_PATH."""

from pathlib import Path

from nightmill.orchestration.dag_factory import job_dags

for dag in job_dags(Path(__file__).parent / "jobs"):
    globals()[dag.dag_id] = dag

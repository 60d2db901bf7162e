# Airflow reads this file: one DAG for each job folder of jobs/ beside it, and of the folders in NIGHTMILL_JOBS_PATH.
from nightmill.orchestration.dag_files import job_dags_of

globals().update(job_dags_of(__file__))

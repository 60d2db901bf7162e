# Airflow reads this file and finds no DAG: its import error lists the job folders that are broken, and their mistakes.
from nightmill.orchestration.dag_files import refuse_broken_jobs

refuse_broken_jobs(__file__)

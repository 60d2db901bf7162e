# Airflow reads this file: the DAGs of operations, which are replay, publish, rollback, cancel and maintenance.
from nightmill.orchestration.dag_files import operations_dags_of

globals().update(operations_dags_of(__file__))

"""The operations DAGs of nightmill in Airflow (which reads only files that name both words): cancel and maintenance."""

from pathlib import Path

from nightmill.orchestration.operations import cancel_dag, maintenance_dag

for dag in (cancel_dag(), maintenance_dag(Path(__file__).parent / "jobs")):
    globals()[dag.dag_id] = dag

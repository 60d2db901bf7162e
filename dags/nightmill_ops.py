"""The operations DAGs of nightmill (Airflow reads only files that name both words): replay, publish, rollback, cancel,
maintenance."""

from pathlib import Path

from nightmill.orchestration.operations import cancel_dag, maintenance_dag
from nightmill.orchestration.publish_dag import publish_dag
from nightmill.orchestration.replay_dag import replay_dag
from nightmill.orchestration.rollback_dag import rollback_dag

JOBS = Path(__file__).parent / "jobs"

for dag in (replay_dag(JOBS), publish_dag(JOBS), rollback_dag(JOBS), cancel_dag(), maintenance_dag(JOBS)):
    globals()[dag.dag_id] = dag

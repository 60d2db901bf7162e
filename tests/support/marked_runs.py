"""Runs as Airflow itself ends them, in a process of its own with a metadata database of its own: `run-1` is marked as
failed as the API server does it for a person, `run-2` fails by itself and `run-3` is timed out as the scheduler does
it, `run-4` is marked as failed and its DAG is none of nightmill's, `run-5` is marked as failed and has no batch."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.api_fastapi.core_api.datamodels.dag_run import DagRunMutableStates
from airflow.api_fastapi.core_api.services.public.dag_run import patch_dag_run_state
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.models.dagrun import DagRun
from airflow.serialization.serialized_objects import DagSerialization
from airflow.utils.db import initdb
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType, DagRunType

DAG_FILE = """
from datetime import datetime, UTC
from airflow.sdk import DAG
from airflow.providers.standard.operators.empty import EmptyOperator

for name in ("nightmill_test", "somebody_elses"):
    with DAG(name, schedule=None, start_date=datetime(2025, 1, 1, tzinfo=UTC)) as dag:
        EmptyOperator(task_id="one")
    globals()[name] = dag
"""


def main(dags_folder: Path) -> None:
    initdb()
    (dags_folder / "some.py").write_text(DAG_FILE)
    bag = DagBag(dags_folder, bundle_path=dags_folder, bundle_name="dags-folder")
    assert set(bag.dags) == {"nightmill_test", "somebody_elses"}, bag.import_errors
    with create_session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)
    sync_bag_to_db(bag, "dags-folder", None)
    dags = {
        name: DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)) for name, dag in bag.dags.items()
    }
    ours, foreign = dags["nightmill_test"], dags["somebody_elses"]
    with create_session() as session:
        mark_failed(ours, run_of(ours, 1, session), session)
        fail_by_itself(ours, run_of(ours, 2, session), session)
        time_out(run_of(ours, 3, session))
        mark_failed(foreign, run_of(foreign, 4, session), session)
        mark_failed(ours, run_of(ours, 5, session), session)


def run_of(dag: Any, number: int, session: Any) -> DagRun:
    moment = datetime(2026, 1, number, tzinfo=UTC)
    return dag.create_dagrun(  # type: ignore[no-any-return]
        run_id=f"run-{number}",
        logical_date=moment,
        data_interval=(moment, moment),
        run_after=moment,
        run_type=DagRunType.MANUAL,
        state=DagRunState.RUNNING,
        triggered_by=DagRunTriggeredByType.TEST,
        triggering_user_name="tester",
        start_date=moment,
        session=session,
    )


def mark_failed(dag: Any, run: DagRun, session: Any) -> None:
    patch_dag_run_state(dag=dag, dag_run=run, state=DagRunMutableStates.FAILED, session=session)
    session.flush()
    session.refresh(run)
    assert run.state == DagRunState.FAILED


def fail_by_itself(dag: Any, run: DagRun, session: Any) -> None:
    run.dag = dag
    for instance in run.get_task_instances(session=session):
        instance.state = TaskInstanceState.FAILED
    session.flush()
    run.update_state(session=session, execute_callbacks=False)
    assert run.state == DagRunState.FAILED


def time_out(run: DagRun) -> None:
    """As SchedulerJobRunner._schedule_dag_run does at the end of dagrun_timeout."""
    run.set_state(DagRunState.FAILED)
    run.notify_dagrun_state_changed(msg="timed_out")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

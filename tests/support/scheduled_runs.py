"""Runs as Airflow's scheduler and backfills make them, in a process with a metadata database of its own: an asset event
starts a job that follows the asset, one that has a cron too, and a DAG that names the asset by reference; nights of the
second job are backfilled. Prints as JSON what the runs are."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from airflow.assets.manager import asset_manager
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.jobs.job import Job
from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
from airflow.models.asset import AssetDagRunQueue, AssetModel
from airflow.models.backfill import AlreadyRunningBackfill, ReprocessBehavior, _create_backfill
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.serialization.definitions.assets import SerializedAsset
from airflow.utils.db import initdb
from airflow.utils.session import create_session
from airflow.utils.sqlalchemy import prohibit_commit
from sqlalchemy import select

from nightmill.orchestration.tasks import asset

BY_REFERENCE = """
from airflow.sdk import DAG, Asset
from airflow.providers.standard.operators.empty import EmptyOperator

with DAG("by_reference", schedule=[Asset.ref(uri="nightmill://results/terms")]) as dag:
    EmptyOperator(task_id="one")
"""


def main(dags_folder: Path, extra: dict[str, Any], nights: list[str]) -> None:
    initdb()
    (dags_folder / "by_reference.py").write_text(BY_REFERENCE)
    bag = DagBag(dags_folder, bundle_path=dags_folder, bundle_name="dags-folder")
    with create_session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)
    sync_bag_to_db(bag, "dags-folder", None)
    sys.stdout.write(
        json.dumps(
            {
                "started": started_by_an_event(extra),
                "queued": queued_by_a_partition(extra),
                "backfilled": backfilled(*nights),
            }
        )
        + "\n"
    )


def started_by_an_event(extra: dict[str, Any]) -> dict[str, Any]:
    """What the events of each run say that an event of results.terms started."""
    view = asset("terms")
    with create_session() as session:
        for model in session.scalars(select(DagModel)):
            model.is_paused = False
        session.flush()
        assert session.scalar(select(AssetModel).where(AssetModel.uri == view.uri)) is not None
        told = SerializedAsset(name=view.name, uri=view.uri, group=view.group, extra={}, watchers=[])
        asset_manager.register_asset_change(asset=told, extra=extra, session=session)
    runner = SchedulerJobRunner(Job())
    with create_session() as session, prohibit_commit(session) as guard:
        runner._create_dagruns_for_dags(guard, session)
    with create_session() as session:
        runs = session.scalars(select(DagRun).where(DagRun.run_type == "asset_triggered"))
        return {
            run.dag_id: {
                "interval": [run.data_interval_start, run.data_interval_end],
                "events": [event.extra for event in run.consumed_asset_events],
            }
            for run in runs
        }


def queued_by_a_partition(extra: dict[str, Any]) -> list[str]:
    """Which DAGs an event of the same view queues that has a partition key."""
    with create_session() as session:
        model = session.scalars(select(AssetModel).where(AssetModel.uri == asset("terms").uri)).one()
        asset_manager.register_asset_change(asset=model, extra=extra, partition_key="2026-01-05", session=session)
        session.flush()
        return list(session.scalars(select(AssetDagRunQueue.target_dag_id)))


def backfilled(first: str, last: str) -> dict[str, Any]:
    """The nights that a backfill makes runs of, and what a second one is told meanwhile."""

    def backfill() -> None:
        _create_backfill(
            dag_id="nightmill_both",
            from_date=datetime.fromisoformat(first),
            to_date=datetime.fromisoformat(last),
            max_active_runs=1,
            reverse=False,
            dag_run_conf=None,
            triggering_user_name="tester",
            reprocess_behavior=ReprocessBehavior.NONE,
        )

    backfill()
    try:
        backfill()
        refused = ""
    except AlreadyRunningBackfill as fault:
        refused = str(fault)
    with create_session() as session:
        query = select(DagRun).where(DagRun.run_type == "backfill").order_by(DagRun.logical_date)
        runs = [(run.data_interval_start, run.data_interval_end) for run in session.scalars(query)]
    return {"intervals": [[start.isoformat(), end.isoformat()] for start, end in runs], "refused": refused}


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:5])

"""One DAG per job folder. Wiring only: every decision is a stage's.

Parsing is on the hot path (each task parses this again), so stages are imported inside tasks, and while a task runs
only its own DAG is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, AssetAlias, CronDataIntervalTimetable, Param, chain, get_parsing_context, task

from nightmill.domain.contract import JobDefinition
from nightmill.domain.errors import NightmillError
from nightmill.domain.job import Job
from nightmill.orchestration import tasks
from nightmill.orchestration.sensor import ShardSensor
from nightmill.storage import job_folders

PREFIX = "nightmill_"
POOL = "nightmill_batch"
START = datetime(2025, 1, 1, tzinfo=UTC)


class BrokenJobs(DAG):
    """Stands for job folders that cannot be read: becomes the file's import error and hides no other job."""

    def validate(self) -> None:
        """Called by Airflow for every DAG of a file; what it raises is shown in the UI."""
        raise ValueError(self.description)


def job_dags(built_in: Path) -> Iterator[DAG]:
    """The DAGs of all job folders below `built_in` and NIGHTMILL_JOBS_PATH; only the one a running task needs."""
    wanted = get_parsing_context().dag_id
    faults = []
    folders: dict[str, Path] = {}
    try:
        folders = job_folders.find(job_folders.roots(built_in))
    except NightmillError as fault:
        faults.append(str(fault))
    for name, folder in folders.items():
        if wanted is None or wanted == PREFIX + name:
            try:
                yield build_dag(job_folders.read(folder), folder)
            except NightmillError as fault:
                faults.append(f"{folder}: {fault}")
    if faults and wanted is None:
        yield BrokenJobs("nightmill_broken_jobs", description="\n\n".join(faults), schedule=None)


def build_dag(definition: JobDefinition, folder: Path) -> DAG:
    """The stages of one job as a DAG. Raises ConfigError for a folder that does not parse."""
    job = definition.job
    _ = definition.checks, definition.prompt, definition.columns
    with DAG(
        PREFIX + definition.name,
        description=job.description.strip(),
        doc_md=_doc(definition),
        schedule=CronDataIntervalTimetable(job.schedule, timezone="UTC") if job.schedule else None,
        start_date=START,
        catchup=False,
        max_active_runs=1,
        tags=sorted({"nightmill", *job.tags}),
        params=_params(),
        default_args={"owner": job.owner, "retries": 5, "retry_delay": timedelta(seconds=10)},
    ) as dag:
        _wire(job, str(folder))
    return dag


def _wire(job: Job, folder: str) -> None:
    batch_id = task(tasks.freeze_snapshot, pool=POOL)(folder)
    shards = task(tasks.preflight)(folder, task(tasks.plan_shards, pool=POOL)(batch_id))
    run_shard = ShardSensor.partial(
        task_id="run_shard",
        folder=folder,
        pool=POOL,
        retries=10,
        map_index_template="{{ task.shard_label }}",
    ).expand_kwargs(shards)
    # A mapped task over nothing is skipped, and a night on which everything is reused is a normal night.
    rest = {"trigger_rule": "none_failed"}
    chain(
        run_shard,
        task(tasks.reconcile, **rest)(folder, batch_id),
        task(tasks.check_staging, **rest)(folder, batch_id),
        task(tasks.compare, **rest)(batch_id),
        task(tasks.approve, **rest)(batch_id),
        task(tasks.publish, outlets=[AssetAlias(tasks.asset_name(job.publish.view))], **rest)(batch_id),
        task(tasks.report, **rest)(batch_id),
    )


def _params() -> dict[str, Any]:
    """What the trigger form asks. Values are validated by these schemas and bound, never pasted into SQL."""
    return {
        "dry_run": Param(False, type="boolean", title="Dry run", description="Freeze, plan and price; send nothing."),
        "limit": Param(
            None, type=["null", "integer"], minimum=1, title="Limit", description="At most this many source rows."
        ),
        "reprocess": Param(
            False, type="boolean", title="Reprocess", description="Ask again, also where an accepted result exists."
        ),
        "data_interval_start": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="Data interval start",
            description="Bound as %(data_interval_start)s; empty = the schedule's own.",
        ),
        "data_interval_end": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="Data interval end",
            description="Bound as %(data_interval_end)s; empty = the schedule's own.",
        ),
        "note": Param(None, type=["null", "string"], maxLength=500, title="Note", description="Kept with the batch."),
    }


def _doc(definition: JobDefinition) -> str:
    job = definition.job
    return "\n".join(
        (
            f"## {definition.name}",
            "",
            job.description.strip(),
            "",
            f"Publishes `results.{job.publish.view}`. Model `{job.provider.model}` through connection "
            f"`{job.provider.conn_id}`; source connection `{job.source.conn_id}`.",
            "",
            "Clearing a task never pays twice. Clear `run_shard` to re-attach, `check_staging` to check again after "
            "loosening checks.yaml. A new snapshot needs a new run.",
        )
    )

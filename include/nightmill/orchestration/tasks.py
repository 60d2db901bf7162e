"""The tasks of a job's DAG: each one calls its stage. XCom carries ids and labels only.

Stages are imported inside: parsing the DAG file stays light.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias, get_current_context

from nightmill.domain.gates import GateName
from nightmill.domain.wording import pluralised, truncated
from nightmill.jobs.rules.data_interval import is_window, moment, span_of
from nightmill.jobs.rules.publishing import Publishing
from nightmill.jobs.settings.job import Job
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.orchestration.failing import as_airflow_failure

if TYPE_CHECKING:
    from nightmill.storage.shards import ShardLabel

log = logging.getLogger(__name__)
BY_HAND = ("manual", "backfill")  # types of runs whose form a person can have filled in
MOST_OF_TENANTS = 150  # characters of a label: Airflow keeps 250 of what it shows of a mapped task


def freeze_snapshot(folder: str) -> int:
    """Returns the batch id."""
    from nightmill.jobs import job_folders
    from nightmill.orchestration.connections import environment
    from nightmill.stages import freeze

    if get_current_context()["params"].get("parent_batch") is not None:
        return _take_over(folder)
    context = get_current_context()
    run, instance, params = context["dag_run"], context["ti"], dict(context["params"])
    with as_airflow_failure():
        definition = job_folders.read(Path(folder))
        start, end = _data_interval(params, context, definition.job)
        request = freeze.RunRequest(
            dag_id=run.dag_id,
            run_id=run.run_id,
            first_try=instance.try_number == 1,
            dry_run=bool(params.pop("dry_run", False)),
            note=params.pop("note", None),
            data_interval_start=start,
            data_interval_end=end,
            publish=params.pop("publish", None) or Publishing.AUTO,
            by_hand=getattr(run, "run_type", None) in BY_HAND,
            params=params,
            requested_by=getattr(run, "triggering_user_name", None),
            last_try=instance.try_number > instance.max_tries,
            max_tries=instance.max_tries,
            backfilled=instance.try_number > 1 and _runs_again_by_backfill(run, instance),
        )
        return freeze.run(environment(), definition, request).batch_id


def _runs_again_by_backfill(run: Any, instance: Any) -> bool:
    """Whether a backfill cleared this run. The run keeps its type afterwards; a person who clears freeze_snapshot alone
    leaves publish green, and no task would take a new batch any further."""
    if getattr(run, "run_type", None) != "backfill":
        return False
    states = instance.get_task_states(dag_id=run.dag_id, task_ids=["publish"], run_ids=[run.run_id])
    return bool(states.get(run.run_id, {}).get("publish") != "success")


def _take_over(folder: str) -> int:
    """freeze_snapshot of a run that replays a batch."""
    from nightmill.jobs import job_folders
    from nightmill.jobs.rules.dead_letters import DeadLetterFilter
    from nightmill.operations import replay
    from nightmill.orchestration.connections import environment

    context = get_current_context()
    run, instance, params = context["dag_run"], context["ti"], context["params"]
    with as_airflow_failure():
        request = replay.ReplayRequest(
            dag_id=run.dag_id,
            run_id=run.run_id,
            first_try=instance.try_number == 1,
            parent_id=int(params["parent_batch"]),
            choice=DeadLetterFilter.of_json(params.get("replay")),
            dry_run=bool(params.get("dry_run", False)),
            note=params.get("note"),
            requested_by=getattr(run, "triggering_user_name", None),  # Airflow hands it on to runs that a task triggers
            last_try=instance.try_number > instance.max_tries,
            max_tries=instance.max_tries,
            publish=params.get("publish") or Publishing.AUTO,
        )
        return replay.run(environment(), job_folders.read(Path(folder)), request).batch_id


def plan_shards(batch_id: int) -> int:
    """Returns the batch id."""
    from nightmill.orchestration.connections import environment
    from nightmill.stages import plan

    with as_airflow_failure():
        return plan.run(environment(), batch_id).batch_id


def preflight(folder: str, batch_id: int) -> list[dict[str, Any]]:
    """Returns what run_shard maps over: shard id and label."""
    from nightmill.jobs import job_folders
    from nightmill.orchestration.connections import environment
    from nightmill.stages import preflight as stage

    with as_airflow_failure():
        shards = stage.run(environment(), job_folders.read(Path(folder)), batch_id)
    return [{"shard_id": shard.shard_id, "shard_label": _label(shard)} for shard in shards]


def _label(shard: ShardLabel) -> str:
    size = f"{pluralised(shard.items, 'item')}, {shard.prompt_tokens:,} tokens"
    return f"{truncated(shard.tenants, MOST_OF_TENANTS)} {size}".strip()


def reconcile(folder: str, batch_id: int) -> None:
    """Every planned item in exactly one bucket."""
    from nightmill.jobs import job_folders
    from nightmill.orchestration.connections import environment
    from nightmill.stages import reconcile as stage

    with as_airflow_failure():
        stage.run(environment(), job_folders.read(Path(folder)), batch_id)


def check_staging(folder: str, batch_id: int) -> None:
    """Great Expectations on the staging rows."""
    _ask(GateName.CHECK_STAGING, folder, batch_id)


def compare(folder: str, batch_id: int) -> None:
    """The batch against what readers see."""
    _ask(GateName.COMPARE, folder, batch_id)


def approve(folder: str, batch_id: int) -> None:
    """The approval of a job that asks nobody."""
    _ask(GateName.APPROVE, folder, batch_id)


def _ask(name: GateName, folder: str, batch_id: int) -> None:
    from nightmill.gates import driver, registry
    from nightmill.jobs import job_folders
    from nightmill.orchestration.connections import environment

    with as_airflow_failure():
        driver.run(environment(), job_folders.read(Path(folder)), batch_id, registry.named(name))


def publish(folder: str, batch_id: int) -> None:
    """Flip the view, then emit the asset event: only when something is shown, after the commit, at least once."""
    from nightmill.jobs import job_folders
    from nightmill.orchestration.connections import environment
    from nightmill.stages import publish as stage

    context = get_current_context()
    who = getattr(context["dag_run"], "triggering_user_name", None) or "airflow"
    with as_airflow_failure():
        shown = stage.run(environment(), job_folders.read(Path(folder)), batch_id, who)
    if shown is not None:
        emit(context, shown.view_name, stage.event_of(shown))


def report(batch_id: int) -> None:
    """The completion report, in the log."""
    from nightmill.orchestration.connections import environment
    from nightmill.stages import report as stage

    with as_airflow_failure():
        stage.run(environment(), batch_id)


def emit(context: Any, view: str, event: dict[str, Any]) -> None:
    """Tell a view's consumers, once this task has ended well."""
    context["outlet_events"][AssetAlias(asset_name(view))].add(asset(view), extra=event)


def asset_name(view: str) -> str:
    """The alias through which publish emits its asset."""
    return f"nightmill_{view}"


def asset(view: str) -> Asset:
    """What a consumer's DAG schedules on."""
    return Asset(name=f"nightmill.results.{view}", uri=f"nightmill://results/{view}")


def _data_interval(params: dict[str, Any], context: Any, job: Job) -> tuple[datetime | None, datetime | None]:
    """What the form says, else the asset events that started the run, else what Airflow gave the run."""
    run = context["dag_run"]
    start, end = (moment(name, params.pop(name, None)) for name in ("data_interval_start", "data_interval_end"))
    if start is not None and end is not None:
        return start, end
    gapless = is_window(job.source.query) or job.publish.mode is PublishMode.BY_INTERVAL
    announced = span_of(_events(context), gapless=gapless)
    otherwise = announced or (run.data_interval_start, run.data_interval_end)
    return start or otherwise[0], end or otherwise[1]


def _events(context: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The name of each asset whose event started this run, and what the event says. An event that came through an alias
    stands there twice."""
    for key, events in (context.get("triggering_asset_events") or {}).items():
        for event in events:
            yield key.name, event.extra or {}

"""When Airflow starts a job's runs: by cron, after assets, after either, or by hand only."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from airflow.sdk import CronDataIntervalTimetable
from airflow.sdk.exceptions import AirflowTimetableInvalid

from nightmill.domain.errors import ConfigError
from nightmill.jobs.settings.dag_settings import AfterAssets, AssetOf, DagSettings
from nightmill.jobs.settings.job import Job
from nightmill.orchestration.tasks import asset


def schedule_of(job: Job) -> Any:
    """Airflow's `schedule`; None: manual runs only. Each run by cron has the interval since the one before."""
    cron = None if job.schedule is None else _cron(job.schedule, job.dag.timezone)
    assets = None if job.dag.after_assets is None else _assets(job.dag.after_assets)
    if cron is None or assets is None:
        return cron or assets
    from airflow.sdk import AssetOrTimeSchedule  # imported for the few jobs that have both: parsing stays light

    return AssetOrTimeSchedule(timetable=cron, assets=assets)


def start_of(settings: DagSettings) -> datetime:
    """The first moment of start_date in the job's time zone."""
    zone = UTC if settings.timezone == "UTC" else ZoneInfo(settings.timezone)
    return datetime.combine(settings.start_date, time(), zone)


def _cron(expression: str, timezone: str) -> CronDataIntervalTimetable:
    timetable = CronDataIntervalTimetable(expression, timezone=timezone)
    try:
        timetable.validate()
    except AirflowTimetableInvalid as fault:
        raise ConfigError(
            f"job.yaml: schedule: {expression!r} is no cron expression ({fault}).", "Write it like 0 2 * * *."
        ) from fault
    return timetable


def _assets(after: AfterAssets) -> Any:
    from airflow.sdk import AssetAll, AssetAny

    try:
        found = [_asset(one) for one in (*after.all, *after.any)]
    except ValueError as fault:  # Airflow's own rules for an address
        raise ConfigError(
            f"job.yaml: dag.after_assets: an asset is not one of Airflow's ({fault}).",
            "Write its name and URI as the DAG has them that updates it.",
        ) from fault
    return AssetAll(*found) if after.all else AssetAny(*found)


def _asset(one: AssetOf) -> Any:
    """An asset itself, never a reference by name or URI: a run that a reference starts is not told its events."""
    if one.view is not None:
        return asset(one.view)
    from airflow.sdk import Asset

    return Asset(name=one.name or one.uri or "", uri=one.uri or one.name or "")

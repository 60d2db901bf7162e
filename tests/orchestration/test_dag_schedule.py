"""When a job's DAG runs, as the scheduler sees it once the DAG is stored: time zone, catchup, backfill, assets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from airflow.sdk import Asset
from support.pipeline import JOB_YAML, OUTPUT, PROMPT

from nightmill.domain.errors import ConfigError
from nightmill.jobs.contract import JobDefinition
from nightmill.orchestration.dag_factory import build_dag

NIGHTLY = "schedule: '0 2 * * *'\n"
BERLIN = ZoneInfo("Europe/Berlin")


def built(more: str, job_yaml: str = JOB_YAML) -> Any:
    files = {"job.yaml": (job_yaml + more).encode(), "prompt.md": PROMPT.encode(), "output.py": OUTPUT.encode()}
    return build_dag(JobDefinition("nightly", files), Path("nightly"))


def served(more: str) -> Any:
    """The DAG as the scheduler reads it from the metadata database."""
    from airflow.serialization.serialized_objects import DagSerialization

    return DagSerialization.from_dict(DagSerialization.to_dict(built(more)))


def intervals(dag: Any, first: datetime, last: datetime) -> list[tuple[datetime, datetime]]:
    """What `airflow backfill create --from-date FIRST --to-date LAST` makes runs of."""
    return [(one.data_interval.start, one.data_interval.end) for one in dag.iter_dagrun_infos_between(first, last)]


@pytest.mark.parametrize("cron", ["0 2 * * *", "30 2 * * *", "0 3 * * *", "0 0 * * *", "0 */6 * * *", "15 * * * *"])
@pytest.mark.parametrize("change", [datetime(2026, 3, 29, tzinfo=BERLIN), datetime(2026, 10, 25, tzinfo=BERLIN)])
def test_nights_around_a_change_of_the_clock_leave_no_hole_and_do_not_overlap(cron: str, change: datetime) -> None:
    dag = served(f"schedule: '{cron}'\ndag: {{timezone: Europe/Berlin}}\n")
    found = intervals(dag, change - timedelta(days=4), change + timedelta(days=4))
    assert len(found) >= 7
    assert all(start < end for start, end in found)
    assert [(before, after) for before, after in pairwise(found) if before[1] != after[0]] == []


def test_a_night_is_two_oclock_in_its_own_zone_before_and_after_a_change() -> None:
    dag = served(NIGHTLY + "dag: {timezone: Europe/Berlin}\n")
    found = intervals(dag, datetime(2026, 3, 26, tzinfo=BERLIN), datetime(2026, 4, 1, tzinfo=BERLIN))
    clocks = [start.astimezone(BERLIN).strftime("%d %H:%M") for start, _ in found]
    assert clocks == ["26 02:00", "27 02:00", "28 02:00", "29 03:00", "30 02:00", "31 02:00"]  # 2:00 on 29 is no time
    assert sum((end - start for start, end in found), timedelta()) == timedelta(days=6, hours=-1)


def test_the_clock_of_a_job_that_names_no_zone_is_utc() -> None:
    dag = served(NIGHTLY)
    assert dag.timetable.serialize() == {"expression": "0 2 * * *", "timezone": "UTC"}
    assert dag.start_date == datetime(2025, 1, 1, tzinfo=UTC)


def test_the_first_day_begins_at_midnight_of_the_jobs_zone() -> None:
    dag = served(NIGHTLY + "dag: {timezone: Asia/Tokyo, start_date: 2026-01-31}\n")
    assert dag.start_date == datetime(2026, 1, 30, 15, tzinfo=UTC)


def test_the_past_is_caught_up_from_the_first_day_where_the_job_asks_for_that() -> None:
    from airflow.timetables.base import TimeRestriction

    def first(dag: Any) -> datetime:
        restriction = TimeRestriction(dag.start_date, None, dag.catchup)
        found = dag.timetable.next_dagrun_info_v2(last_dagrun_info=None, restriction=restriction)
        return found.data_interval.start

    assert first(served(NIGHTLY + "dag: {start_date: 2026-01-31, catchup: true}\n")).date().isoformat() == "2026-01-31"
    assert datetime.now(UTC) - first(served(NIGHTLY)) <= timedelta(days=2)


def test_runs_may_overlap_where_each_has_an_interval_of_its_own() -> None:
    assert served(NIGHTLY).max_active_runs == 1
    job_yaml = JOB_YAML.replace("{view: notes}", "{view: notes, mode: by_interval}")
    assert built(NIGHTLY + "dag: {max_active_runs: 3}\n", job_yaml).max_active_runs == 3


def test_retries_and_their_wait_are_the_jobs_own_and_the_longest_wait_is_never_shorter() -> None:
    dag = built("dag: {retries: 3, retry_delay_s: 300}\n")
    tasks = [one for one in dag.tasks if one.task_id != "run_shard"]
    assert {one.retries for one in tasks} == {3}
    assert {one.retry_delay for one in tasks} == {one.max_retry_delay for one in tasks} == {timedelta(minutes=5)}


@pytest.mark.parametrize("of", ["all", "any"])
def test_a_job_starts_after_assets_as_their_dags_name_them(of: str) -> None:
    dag = served(
        f"dag: {{after_assets: {{{of}: [{{view: terms}}, {{name: orders, uri: 's3://a/b'}}, {{uri: 's3://c'}}]}}}}\n"
    )
    assert type(dag.timetable).__name__ == "AssetTriggeredTimetable"
    assert type(dag.timetable.asset_condition).__name__ == f"SerializedAsset{of.capitalize()}"
    assert [(one.name, one.uri) for _, one in dag.timetable.asset_condition.iter_assets()] == [
        ("nightmill.results.terms", "nightmill://results/terms"), ("orders", "s3://a/b"), ("s3://c", "s3://c/"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "made"),
    [("{uri: 's3://a/b/'}", Asset("s3://a/b/")), ("{name: orders}", Asset("orders"))],
)
def test_an_asset_of_which_one_half_is_written_is_the_one_that_airflow_makes_of_it(entry: str, made: Asset) -> None:
    condition = built(f"dag: {{after_assets: {{any: [{entry}]}}}}\n").timetable.asset_condition
    assert [(one.name, one.uri) for one in condition.objects] == [(made.name, made.uri)]


def test_no_asset_is_a_reference_because_a_run_that_one_starts_is_not_told_its_events() -> None:
    """Airflow 3.3 looks for the events of a run among the assets that its DAG names, not among references."""
    condition = served("dag: {after_assets: {any: [{name: orders}, {uri: 's3://a/b'}]}}\n").timetable.asset_condition
    assert list(condition.iter_asset_refs()) == []


def test_cron_and_assets_stand_beside_each_other_and_a_backfill_follows_the_cron() -> None:
    dag = served(NIGHTLY + "dag: {timezone: Europe/Berlin, after_assets: {any: [{view: terms}]}}\n")
    assert type(dag.timetable).__name__ == "AssetOrTimeSchedule"
    assert dag.timetable.periodic
    found = intervals(dag, datetime(2026, 1, 1, tzinfo=BERLIN), datetime(2026, 1, 3, tzinfo=BERLIN))
    assert [end - start for start, end in found] == [timedelta(days=1)] * 2


@pytest.mark.parametrize(
    ("more", "periodic"), [(NIGHTLY, True), ("", False), ("dag: {after_assets: {any: [{view: t}]}}\n", False)]
)
def test_only_a_job_with_a_cron_can_be_backfilled(more: str, periodic: bool) -> None:
    assert served(more).timetable.periodic is periodic


def test_a_backfill_is_a_run_for_each_night_that_begins_within_its_dates() -> None:
    found = intervals(served(NIGHTLY), datetime(2026, 1, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, 2, tzinfo=UTC))
    assert [(start.day, start.hour, end.day) for start, end in found] == [(1, 2, 2), (2, 2, 3), (3, 2, 4)]


def test_an_asset_that_airflow_refuses_is_said_as_the_jobs_mistake() -> None:
    with pytest.raises(ConfigError, match=r"job\.yaml: dag\.after_assets: an asset is not one of Airflow's"):
        built("dag: {after_assets: {any: [{uri: 'postgres://host/only_a_database'}]}}\n")


def test_every_schedule_serialises_equal_twice() -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    more = NIGHTLY + "dag: {timezone: Europe/Berlin, after_assets: {any: [{view: terms}]}}\n"
    first, second = (DagSerialization.to_dict(built(more)) for _ in range(2))
    assert first == second

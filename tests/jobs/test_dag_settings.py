"""job.yaml: `dag` and `schedule`: every mistake with its line and what was meant."""

from __future__ import annotations

from datetime import date

import pytest
from support.pipeline import JOB_YAML, OUTPUT, PROMPT

from nightmill.jobs.check.definition import mistakes_of
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.settings.dag_settings import DagSettings

DAILY = "schedule: '0 2 * * *'\n"
LINE = JOB_YAML.count("\n") + 1  # of what is added behind


def said(more: str, job: str = JOB_YAML) -> list[str]:
    files = {"job.yaml": (job + more).encode(), "prompt.md": PROMPT.encode(), "output.py": OUTPUT.encode()}
    return [str(one) for one in mistakes_of(JobDefinition("nightly", files))]


def test_the_defaults_are_what_a_job_did_before_it_could_choose() -> None:
    assert DagSettings() == DagSettings(
        timezone="UTC", start_date=date(2025, 1, 1), catchup=False, max_active_runs=1, retries=8, retry_delay_s=10,
        after_assets=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        DAILY,
        DAILY + "dag: {timezone: Europe/Berlin, start_date: 2026-01-31, catchup: true}\n",
        DAILY + "dag: {start_date: '2026-01-31', retries: 0, retry_delay_s: 60}\n",
        DAILY + "dag: {after_assets: {any: [{view: terms}, {name: orders}, {uri: 's3://a/b'}]}}\n",
        "dag: {after_assets: {all: [{name: orders, uri: 's3://a/b'}]}}\n",
    ],
)
def test_what_airflow_can_do_is_taken(more: str) -> None:
    assert said(more) == []


@pytest.mark.parametrize(
    ("settings", "mistake"),
    [
        ("timezone: Europe/Berln", "timezone: is no time zone of the IANA list; did you mean 'Europe/Berlin'?"),
        ("timezone: ''", "timezone: is no time zone of the IANA list"),
        ("time_zone: UTC", "time_zone: unknown key; did you mean 'timezone'?"),
        ("start_date: 2026", "start_date: expected a day such as 2026-01-31"),
        ("start_date: '2026'", "start_date: expected a day such as 2026-01-31"),
        ("start_date: 2026-01-31 02:00:00", "start_date: expected a day such as 2026-01-31"),
        ("start_date: 0001-01-01", "start_date: expected a value >= 1970-01-02"),
        ("catchup: true", "catchup: the job has no schedule, so there are no intervals to run"),
        ("max_active_runs: 0", "max_active_runs: expected a value >= 1"),
        ("max_active_runs: 2", "max_active_runs: runs of a job with publish.mode replace replace each other's result"),
        ("retries: -1", "retries: expected a value >= 0"),
        ("retry_delay_s: true", "retry_delay_s: expected a number, found true or false"),
        ("after_assets: {}", "after_assets: expected a list of assets under `all` or under `any`, not under both"),
        ("after_assets: {all: [{name: a}], any: [{name: b}]}", "after_assets: expected a list of assets under `all`"),
        ("after_assets: {all: [{}]}", "after_assets.all.0: expected either `view`, or `name` or `uri`"),
        ("after_assets: {all: [{view: a, name: b}]}", "after_assets.all.0: expected either `view`, or `name` or `uri`"),
        ("after_assets: {all: [{name: self}]}", "after_assets.all.0.name: is no name or URI of an Airflow asset"),
        ("after_assets: {all: [{uri: 'airflow://x'}]}", "after_assets.all.0.uri: is no name or URI of an Airflow"),
        ("after_assets: {any: [{view: x}, {view: OWN}]}", "after_assets.any.1.view: this is the job's own view"),
        ("after_assets: {any: [{veiw: terms}]}", "after_assets.any.0.veiw: unknown key; did you mean 'view'?"),
        ("after_assets: [{view: terms}]", "after_assets: expected a mapping of keys and values, found a list"),
        ("after_assets: {any: [terms]}", "after_assets.any.0: expected a mapping of keys and values, found text"),
    ],
)
def test_a_mistake_is_said_with_its_line(settings: str, mistake: str) -> None:
    own = JOB_YAML.split("view: ")[1].split("\n")[0].strip("} ")
    (found, *_) = said(f"dag:\n  {settings.replace('OWN', own)}\n")
    assert found.startswith(f"job.yaml:{LINE + 1}: dag.{mistake}")


def test_the_past_is_caught_up_only_from_a_day_that_the_job_names() -> None:
    """Each of those runs costs money."""
    (found,) = said(DAILY + "dag: {catchup: true}\n")
    assert found.startswith(f"job.yaml:{LINE + 1}: dag.catchup: a run for every interval since start_date starts at")


def test_runs_of_different_intervals_may_overlap() -> None:
    text = JOB_YAML.replace("{view: notes}", "{view: notes, mode: by_interval}") + "dag: {max_active_runs: 3}\n"
    assert said("", text) == []

"""What Airflow's own scheduler and backfills make of a job's `schedule` and `dag`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.pipeline import JOB_YAML, OUTPUT, PROMPT

REPOSITORY = Path(__file__).resolve().parents[2]
JOBS = {
    "follower": "dag: {after_assets: {all: [{view: terms}]}}\n",
    "both": "schedule: '0 2 * * *'\ndag: {timezone: Europe/Berlin, after_assets: {any: [{view: terms}]}}\n",
}
EXTRA = {"data_interval_start": "2026-01-05T01:00:00+00:00", "data_interval_end": "2026-01-06T01:00:00+00:00"}
AROUND_A_CHANGE = ("2026-03-27T00:00:00+00:00", "2026-03-30T12:00:00+00:00")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("scheduled")
    for name, more in JOBS.items():
        folder = root / "jobs" / name
        folder.mkdir(parents=True)
        for file, text in (("job.yaml", JOB_YAML + more), ("prompt.md", PROMPT), ("output.py", OUTPUT)):
            (folder / file).write_text(text)
    (root / "dags").mkdir()
    shutil.copy(REPOSITORY / "dags" / "nightmill_jobs.py", root / "dags")
    airflow = {
        "AIRFLOW_HOME": str(root / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__CORE__DAGS_FOLDER": str(root / "dags"),
        "NIGHTMILL_JOBS_PATH": str(root / "jobs"),
        "PYTHONPATH": f"{REPOSITORY / 'include'}:{REPOSITORY / 'tests'}",
    }
    done = subprocess.run(
        [sys.executable, "-m", "support.scheduled_runs", str(root / "dags"), json.dumps(EXTRA), *AROUND_A_CHANGE],
        env=os.environ | airflow,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("job", JOBS)
def test_an_event_of_a_view_starts_a_job_that_follows_it_and_the_run_is_told_the_event(told: Any, job: str) -> None:
    run = told["started"][f"nightmill_{job}"]
    assert run == {"interval": [None, None], "events": [EXTRA]}  # so the interval is freeze_snapshot's to find


def test_a_run_that_a_reference_starts_is_not_told_its_events(told: Any) -> None:
    """Why `after_assets` names assets themselves (docs/explanation/adr/0013)."""
    assert told["started"]["by_reference"]["events"] == []


def test_an_event_with_a_partition_key_starts_none_of_the_dags_that_follow_the_asset(told: Any) -> None:
    """Why publish emits no partition (docs/explanation/adr/0013)."""
    assert told["queued"] == []


def test_an_alias_takes_no_partition_key() -> None:
    from airflow.sdk.definitions.asset import AssetAliasUniqueKey
    from airflow.sdk.execution_time.context import OutletEventAccessor

    with pytest.raises(TypeError, match="not supported on asset alias"):
        OutletEventAccessor(key=AssetAliasUniqueKey(name="nightmill_terms")).add_partitions("2026-01-05")


def test_a_backfill_around_a_change_of_the_clock_makes_a_run_for_each_night_without_a_hole(told: Any) -> None:
    intervals = told["backfilled"]["intervals"]
    assert [start for start, _ in intervals] == [
        "2026-03-27T01:00:00+00:00", "2026-03-28T01:00:00+00:00", "2026-03-29T01:00:00+00:00",
        "2026-03-30T00:00:00+00:00",
    ]  # fmt: skip
    assert all(before[1] == after[0] for before, after in pairwise(intervals))


def test_a_dag_has_one_backfill_at_a_time(told: Any) -> None:
    assert "There can be only one running backfill per Dag" in told["backfilled"]["refused"]

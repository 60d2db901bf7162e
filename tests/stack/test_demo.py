"""What `make demo` prints."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dev.demo.run import definition_of, follow, progress, queued, text_table
from dev.stack import commands
from dev.stack.airflow_client import log_line
from dev.stack.settings import REPOSITORY
from nightmill.domain.errors import BrokenJobFolder, ConfigError
from nightmill.orchestration.trigger_form import trigger_form


def instance(task_id: str, state: str | None) -> dict[str, object]:
    return {"task_id": task_id, "state": state}


def test_progress_counts_mapped_tasks_by_state_and_leaves_out_what_has_not_begun() -> None:
    shards = [instance("run_shard", "success")] * 3 + [instance("run_shard", "deferred")] * 5
    line = progress([instance("freeze_snapshot", "success"), *shards, instance("reconcile", None)])
    assert line == "1/3 tasks done; run_shard 5/8 deferred, 3/8 success"


def test_a_run_that_has_not_begun_names_the_one_that_it_waits_for() -> None:
    runs = [{"dag_run_id": "manual__1", "state": "queued"}, {"dag_run_id": "scheduled__1", "state": "running"}]
    airflow: Any = SimpleNamespace(dag_runs=lambda dag_id: runs)
    said = queued(airflow, "nightmill_x", "manual__1")
    assert said == "waits until scheduled__1 has ended: runs of a job do not overlap"
    assert queued(airflow, "nightmill_x", "scheduled__1") == "queued"


def test_an_exception_in_a_log_says_its_message_and_place_without_the_frames() -> None:
    frames = [{"filename": "runner.py", "lineno": 1, "name": "run"}, {"filename": "tasks.py", "lineno": 7, "name": "f"}]
    fault = {"exc_type": "AirflowFailException", "exc_value": "No rows. Remedy: add some.", "frames": frames}
    event = {"timestamp": "T", "level": "error", "event": "Task failed", "task_id": "x", "error_detail": [fault]}
    assert log_line(event) == "T ERROR Task failed\nAirflowFailException: No rows. Remedy: add some. (tasks.py:7)"


def test_a_table_keeps_each_row_on_one_line_and_cuts_the_widest_column() -> None:
    table = text_table(["id", "long_text"], [(1, "two\nlines"), (2, "x" * 100), (None, ["a", "b"])], width=14)
    assert table.splitlines() == [
        "    long_",
        "id  text",
        "--  ----------",
        "1   two lines",
        "2   xxxxxxx...",
        "    a, b",
    ]


def test_a_wide_table_fits_a_terminal_line() -> None:
    names = ["source_id", "spdx_id", "copyright_holders", "copyright_years", "grants_patent_licence", "evidence"]
    table = text_table(names, [("s" * 80, "MIT", ["h" * 90], [2012, 2015], False, "e" * 300)])
    assert max(map(len, table.splitlines())) <= 120
    assert "MIT" in table
    assert "2012, 2015" in table


def test_a_job_is_run_by_the_name_of_its_folder_and_another_name_is_answered_with_the_nearest() -> None:
    assert definition_of(REPOSITORY / "examples", "license_audit").name == "license_audit"
    with pytest.raises(ConfigError, match=r"no job folder 'licence_audit' \(did you mean 'license_audit'\?\)"):
        definition_of(REPOSITORY / "examples", "licence_audit")


@pytest.mark.parametrize(
    ("options", "conf"),
    [
        (
            ["--data-interval", "2026-01-31T02:00", "2026-02-01T03:00+01:00"],
            {"data_interval_start": "2026-01-31T02:00:00+00:00", "data_interval_end": "2026-02-01T03:00:00+01:00"},
        ),
        (["--data-interval-end", "2026-01-31"], {"data_interval_end": "2026-01-31T00:00:00+00:00"}),
        (["--limit", "3", "--publish", "yes"], {"limit": 3, "publish": "yes"}),
        ([], {}),
    ],
)
def test_the_options_of_make_run_are_the_fields_of_the_trigger_form(
    options: list[str], conf: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(commands, "_attached", lambda stack: stack)
    monkeypatch.setattr(commands, "run_job", lambda *arguments: asked.append(arguments) or 0)
    assert commands.run(SimpleNamespace(), ["license_audit", *options]) == 0  # type: ignore[arg-type]
    [(_, job, chosen, filters)] = asked
    assert (job, chosen, filters) == ("license_audit", conf, [])
    assert set(chosen) <= set(trigger_form(definition_of(REPOSITORY / "examples", "license_audit").job))


def test_a_moment_that_is_none_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        commands.run(SimpleNamespace(), ["license_audit", "--data-interval", "soon", "later"])  # type: ignore[arg-type]
    assert "expected a moment such as 2026-01-31T02:00, found 'soon'" in capsys.readouterr().err


def test_a_run_shows_how_far_its_batch_is_whenever_that_changes(capsys: pytest.CaptureFixture[str]) -> None:
    states = iter(["running", "running", "running", "success"])
    airflow: Any = SimpleNamespace(
        dag_run=lambda dag_id, run_id: {"state": next(states)},
        task_instances=lambda dag_id, run_id: [instance("run_shard", "deferred")],
    )
    said = iter(["", "1 of 2 shards settled", "1 of 2 shards settled", "2 of 2 shards settled"])
    assert follow(airflow, "dag", "run", lambda: next(said)) == "success"
    lines = [line.split(" s  ")[1] for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "0/1 tasks done; run_shard deferred", "1 of 2 shards settled", "2 of 2 shards settled", "run success",
    ]  # fmt: skip


def test_a_broken_job_folder_is_named_before_anything_is_triggered(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "examples" / "jobs" / "license_audit", tmp_path / "jobs" / "license_audit")
    (tmp_path / "jobs" / "license_audit" / "checks.yaml").write_text("expectations: [\n")
    with pytest.raises(BrokenJobFolder, match=r"checks\.yaml:2: not YAML"):
        definition_of(tmp_path, "license_audit")

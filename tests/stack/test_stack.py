"""A local stack of its own, from nothing: Airflow runs a DAG, a killed scheduler is repaired, nothing is left behind.

`make test` holds the same in tests/end_to_end/test_up_and_down.py, on the stack that is up there anyway.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.running_site import processes_of

from dev.stack.commands import run
from dev.stack.processes import is_alive
from dev.stack.settings import REPOSITORY, StackSettings
from dev.stack.stack import Stack
from nightmill.domain.errors import ConfigError

pytestmark = pytest.mark.slow

DAG = """
from airflow.sdk import BaseHook, dag, task

@dag(schedule=None)
def look_around():
    @task
    def look():
        import nightmill.domain
        return [BaseHook.get_connection(name).login for name in ("nightmill_db", "nightmill_demo_source")]
    look()

look_around()
"""


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    root = Path(tempfile.mkdtemp(prefix="nightmill-test-"))
    (root / "dags").mkdir()
    (root / "dags" / "look_around.py").write_text(DAG)
    made = Stack(StackSettings(home=root / "home", dags_folder=root / "dags"))
    yield made
    made.down()
    shutil.rmtree(root)


def test_up_gives_a_working_airflow_and_a_second_up_changes_nothing(stack: Stack) -> None:
    running = stack.up()
    with running.client() as client:
        client.wait_for_dag("look_around")
        client.unpause("look_around")
        run_id = client.trigger("look_around")
        assert client.wait_for_run("look_around", run_id, timeout_s=120) == "success"
        assert client.xcom("look_around", run_id, "look") == ["nightmill_writer", "nightmill_demo"]
    again = stack.up()
    assert again.changed == ()
    assert again.ports == running.ports
    assert [state for _, state, _ in stack.status() if not state.startswith("pid ")] == []


def test_a_job_that_the_stack_was_started_without_asks_for_another_up(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.up()
    shutil.copytree(REPOSITORY / "examples" / "jobs" / "license_audit", tmp_path / "new_job")
    monkeypatch.setenv("NIGHTMILL_JOBS_PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"started with other settings .* and has no DAG nightmill_new_job"):
        run(stack, ["new_job"])


def test_up_after_a_kill_starts_only_what_died_and_ends_its_orphans(stack: Stack) -> None:
    stack.up()
    scheduler = stack.books.records()["scheduler"]
    orphans = psutil.Process(scheduler.pid).children(recursive=True)
    assert orphans
    os.kill(scheduler.pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(scheduler.pid)], timeout=60)
    assert not is_alive(scheduler)
    with pytest.raises(ConfigError, match="not up: scheduler does not run"):
        run(stack, ["license_audit"])
    assert stack.up().changed == ("scheduler",)
    assert psutil.wait_procs(orphans, timeout=60)[1] == []


def test_what_holds_secrets_is_readable_by_its_owner_only(stack: Stack) -> None:
    stack.up()
    home = stack.settings.home
    private = ["secrets.json", "stack.json", "ports.json", "postgres/passwords.json", "airflow/passwords.json"]
    private += [f"logs/{path.name}" for path in (home / "logs").iterdir()]
    assert {name for name in private if (home / name).stat().st_mode & 0o077} == set()


def test_down_leaves_no_process_and_a_second_down_has_nothing_to_do(stack: Stack) -> None:
    stack.up()
    sessions = {record.pid for record in stack.books.records().values()}
    assert len(processes_of(stack.settings.home, sessions)) > 6
    assert set(stack.down()) >= {"postgres", "simulator", "scheduler", "triggerer", "dag-processor", "api-server"}
    assert processes_of(stack.settings.home, sessions) == []
    assert stack.down() == []

"""`make up` and `make down` on the stack of all other end-to-end tests. Runs last: at its end nothing is left.

tests/stack/test_stack.py does the same with a stack of its own, from nothing, in `make sweep`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import psutil
import pytest
from support.running_site import Site, kill, processes_of

from dev.stack.commands import run
from nightmill.domain.errors import ConfigError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "jobs"


def test_a_second_up_changes_nothing(site: Site) -> None:
    site.stack.up()  # the tutorial's reader called it last, from another directory and environment
    again = site.stack.up()
    assert again.changed == ()
    assert again.ports == site.running.ports
    assert [state for _, state, _ in site.stack.status() if not state.startswith("pid ")] == []


def test_a_job_that_the_stack_was_started_without_asks_for_another_up(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLES / "license_audit", tmp_path / "new_job")
    monkeypatch.setenv("NIGHTMILL_JOBS_PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"started with other settings .* and has no DAG nightmill_new_job"):
        run(site.stack, ["new_job"])


def test_up_after_a_kill_starts_only_what_died_and_ends_its_orphans(site: Site) -> None:
    scheduler = psutil.Process(site.stack.books.records()["scheduler"].pid)
    orphans = scheduler.children(recursive=True)
    assert orphans
    kill([scheduler])
    with pytest.raises(ConfigError, match="not up: scheduler does not run"):
        run(site.stack, ["license_audit"])
    assert site.stack.up().changed == ("scheduler",)
    assert psutil.wait_procs(orphans, timeout=60)[1] == []


def test_what_holds_secrets_is_readable_by_its_owner_only(site: Site) -> None:
    home = site.stack.settings.home
    private = ["secrets.json", "stack.json", "ports.json", "postgres/passwords.json", "airflow/passwords.json"]
    private += [f"logs/{path.name}" for path in (home / "logs").iterdir()]
    assert {name for name in private if (home / name).stat().st_mode & 0o077} == set()


def test_down_leaves_no_process_and_a_second_down_has_nothing_to_do(site: Site) -> None:
    sessions = {record.pid for record in site.stack.books.records().values()}
    assert len(processes_of(site.stack.settings.home, sessions)) > 6
    assert set(site.stack.down()) >= {"postgres", "simulator", "scheduler", "triggerer", "dag-processor", "api-server"}
    assert processes_of(site.stack.settings.home, sessions) == []
    assert site.stack.down() == []

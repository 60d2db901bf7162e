"""What holds for every command: odd arguments, a reader that goes away, Ctrl-C, a database that ends the connection."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from support.pipeline import Pipeline

from dev.stack.settings import REPOSITORY
from nightmill.cli.commands import main


def command(*arguments: str, **variables: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "nightmill", *arguments],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": "include"} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["status", "--batch", "0"], "expected a whole number from 1 to 2147483647, found '0'"),
        (["dead-letters", "--batch", "9" * 30], "expected a whole number from 1 to 2147483647"),
        (["estimate", "x", "--limit", "ten"], "expected a whole number from 1 to 2147483647, found 'ten'"),
        (["estimate", "x", "--data-interval-start", "2026-13-01"], "expected a moment such as 2026-01-31T02:00"),
        (["validate", "--jobs", "/no/such/folder"], "there is no folder '/no/such/folder'"),
        (["validate", "--jobs", "\udcff"], "there is no folder"),
    ],
)
def test_an_odd_argument_is_named(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_fault() -> None:
    with command("validate", "--json") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 1


@pytest.mark.parametrize("arguments", [("validate",), ("validate", "no_such_job"), ("doctor", "--json"), ("--help",)])
@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_closed_pipe_leaves_no_traceback_whatever_is_said_and_where(arguments: tuple[str, ...], closed: str) -> None:
    with command(*arguments) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        (running.stdout if closed == "stdout" else running.stderr).close()
        left = (running.stderr if closed == "stdout" else running.stdout).read()
    assert b"Traceback" not in left
    assert b"BrokenPipeError" not in left


@contextmanager
def waiting_for_a_lock(pipeline: Pipeline) -> Iterator[subprocess.Popen[bytes]]:
    """A command that is in the middle of a query."""
    variables = {
        "AIRFLOW_CONN_NIGHTMILL_DB": pipeline.writer_dsn,
        "NIGHTMILL_OBJECT_STORE": f"file://{pipeline.store}",
    }
    with psycopg.connect(pipeline.admin_dsn) as conn, command("dead-letters", **variables) as running:
        conn.execute("lock table nightmill.dead_letter in access exclusive mode")
        _wait_for_a_waiting_session(pipeline)
        yield running


def test_ctrl_c_ends_a_command_without_a_traceback(pipeline: Pipeline) -> None:
    with waiting_for_a_lock(pipeline) as running:
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=120)
    assert (running.returncode, said) == (130, b"interrupted\n")


def test_a_database_that_ends_the_connection_is_said_without_a_traceback(pipeline: Pipeline) -> None:
    with waiting_for_a_lock(pipeline) as running:
        pipeline.sql("select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'")
        _, said = running.communicate(timeout=120)
    assert running.returncode == 1
    assert said.startswith(b"error: the database did not finish the command (AdminShutdown)\nremedy: ")


def _wait_for_a_waiting_session(pipeline: Pipeline) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if pipeline.sql("select 1 from pg_stat_activity where wait_event_type = 'Lock'"):
            return
        time.sleep(0.1)
    raise TimeoutError("no session waits")


def test_what_is_no_connection_is_refused_without_its_password() -> None:
    with command("status", AIRFLOW_CONN_NIGHTMILL_DB="postgres://a:hush/hush@db/x") as running:
        _, said = running.communicate(timeout=120)
    assert running.returncode == 1
    assert b"AIRFLOW_CONN_NIGHTMILL_DB is not a connection's URI" in said
    assert b"hush" not in said

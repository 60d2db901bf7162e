"""The embedded server: side by side, attached again, repaired after a kill."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from dev.stack.postgres import Server, running_pid, start_server


@pytest.fixture
def home() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="nightmill-test-"))
    yield path
    from dev.stack.postgres import stop_server

    stop_server(path)
    shutil.rmtree(path)


def ask(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query).fetchone()  # type: ignore[arg-type]
        return row[0] if row else None


def test_two_servers_run_side_by_side_and_stopping_one_leaves_the_other(postgres_server: Server, home: Path) -> None:
    other = start_server(home, durable=False)
    assert other.port != postgres_server.port
    assert ask(other.dsn("postgres"), "select 1") == 1
    assert other.cluster_id() != postgres_server.cluster_id()
    children = psutil.Process(other.pid()).children(recursive=True)
    other.stop()
    assert other.pid() is None
    assert psutil.wait_procs(children, timeout=60)[1] == []
    assert ask(postgres_server.dsn("postgres"), "select 1") == 1


def test_starting_a_running_server_attaches_to_it(postgres_server: Server) -> None:
    again = start_server(postgres_server.home, durable=False)
    assert (again.port, again.pid()) == (postgres_server.port, postgres_server.pid())


def test_data_and_passwords_survive_a_restart_and_the_wished_port_is_used_again(home: Path) -> None:
    first = start_server(home, durable=False)
    first.create_login("somebody")
    first.create_database("kept", owner="somebody")
    with psycopg.connect(first.dsn("kept", "somebody")) as connection:
        connection.execute("create table note (text text)")
    first.stop()
    second = start_server(home, durable=False, port=first.port)
    assert second.port == first.port
    assert ask(second.dsn("kept", "somebody"), "select count(*) from note") == 0


def test_a_killed_server_starts_again(home: Path) -> None:
    first = start_server(home, durable=False)
    pid = first.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=60)
    second = start_server(home, durable=False)
    assert second.pid() != pid
    assert ask(second.dsn("postgres"), "select 1") == 1


def test_a_pid_that_now_belongs_to_another_program_is_neither_killed_nor_in_the_way(home: Path) -> None:
    server = start_server(home, durable=False)
    claim = home / "data" / "postmaster.pid"
    lines = claim.read_text().splitlines()
    server.stop()
    claim.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    assert running_pid(home) is None
    server.stop()
    assert start_server(home, durable=False).pid() not in (None, os.getpid())


def test_a_wrong_or_missing_password_is_refused(postgres_server: Server) -> None:
    host = f"postgresql://postgres:{{}}127.0.0.1:{postgres_server.port}/postgres"
    for login in ("wrong@", "@"):
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(host.format(login)).close()


def test_passwords_are_readable_by_their_owner_only_and_never_shown(postgres_server: Server) -> None:
    path = postgres_server.home / "passwords.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert postgres_server.password("postgres") not in repr(postgres_server)


def test_row_values_of_a_failing_statement_stay_out_of_the_log(postgres_server: Server) -> None:
    with psycopg.connect(postgres_server.dsn("postgres")) as connection:
        connection.execute("create temporary table document (id int primary key, body text check (body <> 'canary-7'))")
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute("insert into document values (1, 'canary-7')")
    assert "canary-7" not in (postgres_server.home / "postgres.log").read_text()


def test_a_fresh_database_is_empty_and_gone_after_its_test(make_database, postgres_server: Server) -> None:
    dsn = make_database()
    assert ask(dsn, "select count(*) from pg_tables where schemaname = 'public'") == 0


def test_a_copy_of_the_ledger_template_has_the_ledger_and_is_its_own(make_database, ledger_template: str) -> None:
    first, second = make_database(ledger_template), make_database(ledger_template)
    assert first != second
    assert ask(first, "select count(*) from nightmill.batch") == 0
    assert ask(second, "select count(*) > 0 from nightmill.migration") is True


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("useradd") is None, reason="only root makes accounts")
def test_processes_that_need_the_account_at_once_agree_on_its_id() -> None:
    """Two `useradd` at once gave two ids, of which one was lost: initdb then ran as a user who does not exist."""
    name = f"nightmill-test-{os.getpid()}"
    script = f"import dev.stack.postgres_account as a; a.ACCOUNT = {name!r}; print(a.server_account().uid)"
    try:
        askers = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) for _ in range(4)]
        seen = {int(asker.communicate()[0]) for asker in askers}
        assert seen == {pwd.getpwnam(name).pw_uid}
    finally:
        subprocess.run(["userdel", name], check=False, capture_output=True)

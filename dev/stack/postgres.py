"""An embedded Postgres 18 server on a free loopback port with passwords, for the local stack and for tests.

The server outlives the process that starts it; `start_server` on the same home attaches to a running one. Its log
never holds statements, parameters or row values.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

from dev.stack.ports import LOOPBACK, find_free, is_free
from dev.stack.postgres_account import Account, binaries, open_paths, server_account
from dev.stack.private_files import SecretBook, write_private
from nightmill.domain.errors import ConfigError, NightmillError

ADMIN = "postgres"
START_ATTEMPTS = 5
TIMEOUT_S = 60

SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
shared_buffers = '128MB'
max_wal_size = '2GB'
max_locks_per_transaction = 256
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
# No document text in the server's log: no statements, no parameters, no DETAIL and CONTEXT lines.
log_min_error_statement = panic
log_parameter_max_length_on_error = 0
log_error_verbosity = terse
"""
# Tests connect some ten thousand times: without fewer iterations half of that time would go into passwords.
FAST_PASSWORDS = "scram_iterations=1"
SETTINGS_NOT_DURABLE = f"""
fsync = off
synchronous_commit = off
full_page_writes = off
autovacuum_naptime = '10min'
{FAST_PASSWORDS}
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server. Databases and roles are made with the administrator's login, which only this home knows."""

    home: Path
    port: int
    secrets: SecretBook

    def dsn(self, database: str, user: str | None = None) -> str:
        """Connection URL with password; the administrator's unless a login made by `create_login` is named."""
        login = user or ADMIN
        return f"postgresql://{login}:{self.password(login)}@{LOOPBACK}:{self.port}/{quote(database)}"

    def password(self, user: str) -> str:
        """The generated password of a login of this server."""
        return self.secrets.get(user)

    def create_login(self, name: str) -> None:
        """Create a role that may log in and has no other right, or give an existing one its password again."""
        with self._admin() as connection:
            exists = connection.execute("select 1 from pg_roles where rolname = %s", [name]).fetchone()
            verb = sql.SQL("alter role {} login password {}" if exists else "create role {} login password {}")
            connection.execute(verb.format(sql.Identifier(name), sql.Literal(self.password(name))))

    def create_database(
        self, name: str, owner: str = ADMIN, template: str = "template1", *, copy_files: bool = False
    ) -> None:
        """Create a database as a copy of `template` unless it exists. `copy_files` takes half as long where nothing
        is synced to disk."""
        with self._admin() as connection:
            if connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone() is None:
                names = [sql.Identifier(part) for part in (name, owner, template)]
                statement = sql.SQL("create database {} owner {} template {}").format(*names)
                connection.execute(statement + sql.SQL(" strategy file_copy") if copy_files else statement)

    def drop_database(self, name: str) -> None:
        """Drop a database, ending the sessions in it."""
        with self._admin() as connection:
            connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def cluster_id(self) -> int:
        """The number initdb gave this cluster: differs after the data directory was made anew."""
        with self._admin() as connection:
            row = connection.execute("select system_identifier from pg_control_system()").fetchone()
        return int(row[0]) if row else 0

    def pid(self) -> int | None:
        """The postmaster's process id, or None when the server is not running."""
        return running_pid(self.home)

    def stop(self) -> None:
        """Stop the server, ending open sessions. Does nothing when it is not running."""
        stop_server(self.home)

    def _admin(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.dsn("postgres"), autocommit=True)


def start_server(home: Path, durable: bool = True, port: int | None = None) -> Server:
    """Start the server that lives in `home` (made on first use), or attach to it when it runs.

    `durable=False` trades crash safety for speed and is meant for tests. `port` is a wish: a busy one is replaced.
    Raises ConfigError with the end of the server's log when it does not come up.
    """
    home = home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    account = server_account()
    book = SecretBook(home / "passwords.json")
    if running_pid(home) is not None:
        return Server(home, _read_port(home), book)
    open_paths(account, home)
    if not (home / "data" / "PG_VERSION").exists():
        _init_cluster(home, account, book.get(ADMIN), durable)
    _check_owner(home, account)
    _drop_reused_claim(home)
    return Server(home, _launch(home, account, port), book)


def running_pid(home: Path) -> int | None:
    """The process id of the server in `home`, None unless that process is a Postgres on this very directory."""
    data = home.resolve() / "data"
    try:
        pid = int((data / "postmaster.pid").read_text().split("\n", 1)[0])
        process = psutil.Process(pid)
        ours = str(data) in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, ValueError, psutil.Error):
        return None
    return pid if ours else None


def stop_server(home: Path) -> None:
    """Stop the server that lives in `home`, if it runs: politely, then at once."""
    home = home.resolve()
    pid = running_pid(home)
    if pid is None:
        return
    process = psutil.Process(pid)
    arguments = ["-D", str(home / "data"), "-w", "-t", str(TIMEOUT_S), "stop", "-m"]
    try:
        _run("pg_ctl", [*arguments, "fast"], server_account())
    except ConfigError:
        _run("pg_ctl", [*arguments, "immediate"], server_account())
    with suppress(psutil.Error):
        process.wait(timeout=TIMEOUT_S)


def _init_cluster(home: Path, account: Account, password: str, durable: bool) -> None:
    """Make the data directory beside its final place and rename it, so that a killed initdb leaves nothing half."""
    part = Path(tempfile.mkdtemp(prefix="data.", dir=home))
    secret = part.with_suffix(".password")
    write_private(secret, password)
    if account.switch:
        for path in (part, secret):
            _chown(path, account)
    arguments = ["-D", str(part), "-U", ADMIN, f"--pwfile={secret}", "--auth=scram-sha-256", "--encoding=UTF8"]
    # The built-in locale sorts the same on every machine.
    arguments += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    try:
        _run("initdb", arguments if durable else [*arguments, "--no-sync", "-c", FAST_PASSWORDS], account)
    finally:
        secret.unlink(missing_ok=True)
    with (part / "postgresql.conf").open("a") as stream:
        stream.write(SETTINGS if durable else SETTINGS + SETTINGS_NOT_DURABLE)
    part.rename(home / "data")


def _check_owner(home: Path, account: Account) -> None:
    owner = (home / "data").stat().st_uid
    if owner != account.uid:
        raise ConfigError(
            f"The database in {home} belongs to user id {owner}, this process would run it as {account.uid}.",
            "work as the user who made it, or point NIGHTMILL_HOME to another directory.",
        )


def _drop_reused_claim(home: Path) -> None:
    """Remove a postmaster.pid whose number now belongs to another program: after a reboot Postgres would refuse to
    start beside it. A claim by nobody stays, because Postgres itself checks it for surviving backends."""
    claim = home / "data" / "postmaster.pid"
    with suppress(OSError, ValueError):
        if psutil.pid_exists(int(claim.read_text().split("\n", 1)[0])):
            claim.unlink()


def _launch(home: Path, account: Account, wish: int | None) -> int:
    log = home / "postgres.log"
    log.touch(mode=0o600)
    if account.switch:
        _chown(log, account)
    port = wish if wish is not None and is_free(wish) else find_free()
    for attempt in range(START_ATTEMPTS):
        options = ["-D", str(home / "data"), "-l", str(log), "-w", "-t", str(TIMEOUT_S), "-o", f"-p {port}", "start"]
        try:
            _run("pg_ctl", options, account)
            return port
        except ConfigError as problem:
            if attempt + 1 == START_ATTEMPTS:
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
                raise ConfigError(f"Postgres did not start: {problem.cause}\n{tail}", f"see {log}.") from problem
        time.sleep(1)  # after a kill -9 of the postmaster its backends hold the shared memory for a moment
        port = port if is_free(port) else find_free()
    raise AssertionError("unreachable")


def _read_port(home: Path) -> int:
    """The fourth line of postmaster.pid is the port (documented in Postgres' miscadmin.h)."""
    try:
        return int((home / "data" / "postmaster.pid").read_text().splitlines()[3])
    except (OSError, ValueError, IndexError) as problem:
        raise NightmillError(f"The server in {home} is just starting or stopping.", "try again.") from problem


def _run(program: str, arguments: list[str], account: Account) -> None:
    """Run a Postgres program as the account. Output goes through a file: the daemon keeps pipes open."""
    identity = {"user": account.uid, "group": account.gid, "extra_groups": []} if account.switch else {}
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [str(binaries() / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
            timeout=3 * TIMEOUT_S,
            check=False,
            **identity,  # type: ignore[call-overload]
        )
        if done.returncode != 0:
            output.seek(0)
            text = output.read().decode(errors="replace")[-2000:].strip()
            raise ConfigError(f"{program} failed with exit code {done.returncode}: {text}", "see the message.")


def _chown(path: Path, account: Account) -> None:
    os.chown(path, account.uid, account.gid)

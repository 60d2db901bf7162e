"""What a ledger database and our login there are: read by doctor, changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from psycopg import errors
from psycopg.rows import class_row

from nightmill.storage import sql
from nightmill.storage.ledger import Connection
from nightmill.storage.migrate import migrations


@dataclass(frozen=True, slots=True)
class Login:
    """Which of our roles the login has."""

    login: str
    superuser: bool
    writer: bool
    owner: bool


@dataclass(frozen=True, slots=True)
class Migrated:
    """Migrations that the database lacks, and numbers that this version does not know."""

    missing: tuple[str, ...]
    unknown: tuple[int, ...]


def server_version(conn: Connection) -> int:
    """The major version of the server."""
    return conn.info.server_version // 10_000


def clock(conn: Connection) -> datetime:
    """The server's time."""
    row = conn.execute("select clock_timestamp()").fetchone()
    assert row is not None
    now: datetime = row[0]
    return now


def login(conn: Connection) -> Login:
    """The roles of the login."""
    with conn.cursor(row_factory=class_row(Login)) as cursor:
        row = cursor.execute(sql.text("ledger/login_standing")).fetchone()
    assert row is not None
    return row


def migrated(conn: Connection) -> Migrated | None:
    """How far the ledger is migrated; None where there is no ledger, or none that the login may read."""
    try:
        with conn.transaction():
            done = {row[0] for row in conn.execute("select number from nightmill.migration").fetchall()}
    except (errors.UndefinedTable, errors.InvalidSchemaName, errors.InsufficientPrivilege):
        return None
    known = migrations()
    missing = tuple(f"{number:04d}_{name}" for number, name, _ in known if number not in done)
    return Migrated(missing, tuple(sorted(done - {number for number, _, _ in known})))

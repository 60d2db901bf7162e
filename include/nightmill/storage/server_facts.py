"""What a ledger database and our login there are: read by doctor, changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from psycopg import errors
from psycopg.rows import class_row

from nightmill.storage import migrate, sql
from nightmill.storage.session import Connection


@dataclass(frozen=True, slots=True)
class Login:
    """Which of our roles the login has."""

    login: str
    superuser: bool
    writer: bool
    owner: bool


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


def missing_migrations(conn: Connection) -> list[str] | None:
    """Migrations that the ledger lacks; None where there is no ledger, or none that the login may read.

    Raises ConfigError for a ledger of another version (`migrate.refuse_unknown`).
    """
    try:
        with conn.transaction():
            done = migrate.recorded(conn)
    except (errors.UndefinedTable, errors.InvalidSchemaName, errors.InsufficientPrivilege):
        return None
    migrate.refuse_unknown(done)
    return [f"{number:04d}_{name}" for number, name, _ in migrate.migrations() if number not in done]

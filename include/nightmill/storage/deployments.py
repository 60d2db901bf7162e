"""Which Airflow the ledger belongs to: the first one whose task used it. Another one has runs of the same names, and
would take up their batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from nightmill.domain.errors import ConfigError
from nightmill.storage import sql
from nightmill.storage.session import Connection

VARIABLE = "nightmill_deployment"  # the Airflow variable that holds an Airflow's own id


@dataclass(frozen=True, slots=True)
class Pinned:
    """The Airflow that the ledger belongs to."""

    deployment_id: str
    pinned_at: datetime


def pinned(conn: Connection) -> Pinned | None:
    """None before the first task of an Airflow used the ledger."""
    with conn.cursor(row_factory=class_row(Pinned)) as cursor:
        return cursor.execute(sql.text("ledger/get_deployment")).fetchone()


def pin(conn: Connection, mine: str) -> None:
    """Take a ledger that belongs to nobody, and refuse one that belongs to another Airflow."""
    if pinned(conn) is None:
        conn.execute(sql.text("ledger/pin_deployment"), {"deployment_id": mine})
    refuse_another(conn, mine)


def refuse_another(conn: Connection, mine: str | None) -> None:
    """Raise ConfigError where the ledger belongs to another Airflow than `mine`, None for one that has no id yet."""
    found = pinned(conn)
    if found is not None and found.deployment_id != mine:
        raise another(found, mine)


def another(found: Pinned, mine: str | None) -> ConfigError:
    """What is said to an Airflow that the ledger does not belong to."""
    return ConfigError(
        f"This ledger belongs to another Airflow: since {found.pinned_at:%Y-%m-%d} to the deployment "
        f"{found.deployment_id}, and this one is {mine or 'without an id'}.",
        "Give this Airflow a ledger database of its own (connection nightmill_db). Only if it takes the place of the "
        f"other one, which never runs again: `airflow variables set {VARIABLE} {found.deployment_id}`.",
    )


@contextmanager
def one_at_a_time(conn: Connection) -> Iterator[None]:
    """Tasks that start together make one id. `conn` must be in autocommit."""
    conn.execute("select pg_advisory_lock(7109, 0)")
    try:
        yield
    finally:
        conn.execute("select pg_advisory_unlock(7109, 0)")

"""Connections to the ledger database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors

from nightmill.domain.errors import ConfigError, IllegalTransition, StaleWriter, Terminal, Transient
from nightmill.storage.connection_parameters import parameters

Connection = psycopg.Connection[tuple[Any, ...]]

# Names without a schema are those of Postgres itself, whatever somebody put into a schema that the login looks into.
_SETTINGS = "-c timezone=UTC -c search_path=pg_catalog,pg_temp"


def arguments(dsn: str) -> dict[str, Any]:
    """What psycopg's connect is called with for the ledger. Raises what `parameters` raises."""
    return parameters(dsn, defaults="-c lock_timeout=60s", settings=_SETTINGS)


def connect(dsn: str, *, application: str = "nightmill") -> Connection:
    """A connection in read committed, UTC. The caller owns the transactions.

    Raises Transient where the server cannot be reached: a task's retry is free; ConfigError for no address at all.
    """
    try:
        return psycopg.connect(**arguments(dsn) | {"application_name": application})
    except psycopg.OperationalError as fault:
        raise Transient(
            f"The ledger database cannot be reached: {str(fault).splitlines()[0]}",
            "Check the connection nightmill_db (host, port, login) and that the server runs.",
        ) from fault
    except psycopg.ProgrammingError:  # it quotes the address
        raise ConfigError(
            "The address of the ledger database is none.",
            "Write it as postgresql://login:password@host:port/database, or correct the connection nightmill_db.",
        ) from None


@contextmanager
def refusals() -> Iterator[None]:
    """Translate what the database's own guards refuse (errcodes NM001 to NM005) into our errors."""
    try:
        yield
    except errors.DatabaseError as fault:
        code = fault.sqlstate or ""
        message = fault.diag.message_primary or ""
        if code == "NM001":
            raise IllegalTransition(f"{message}.", "Read the state again and start over from it.") from fault
        if code in ("NM002", "NM004"):
            raise StaleWriter(f"{message}.", "Nothing to do: whoever took over or cancelled goes on.") from fault
        if code in ("NM003", "NM005"):
            raise Terminal(f"{message}.", "This is a fault in nightmill; report it with the task log.") from fault
        raise

"""Connections to the ledger database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors

from nightmill.domain.errors import ConfigError, IllegalTransition, StaleWriter, Terminal, Transient
from nightmill.storage import startup_options
from nightmill.storage.connection_parameters import parameters

Connection = psycopg.Connection[tuple[Any, ...]]
AsyncConnection = psycopg.AsyncConnection[tuple[Any, ...]]
DatabaseError = psycopg.Error
OperationalError = psycopg.OperationalError
InsufficientPrivilege = errors.InsufficientPrivilege
IsolationLevel = psycopg.IsolationLevel

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
        conn, settings = startup_options.connect(arguments(dsn) | {"application_name": application})
    except psycopg.OperationalError as fault:
        raise unreachable("The ledger database cannot be reached:", "the connection nightmill_db", fault) from fault
    except psycopg.ProgrammingError:  # it quotes the address
        raise ConfigError(
            "The address of the ledger database is none.",
            "Write it as postgresql://login:password@host:port/database, or correct the connection nightmill_db.",
        ) from None
    if settings:
        conn.execute(*startup_options.statement(settings, local=False))
        conn.commit()
    return conn


@contextmanager
def reading(conn: Connection) -> Iterator[None]:
    """End the transaction that the reads of the block begin, so that the session holds no snapshot while it waits for
    somebody else."""
    yield
    conn.commit()


async def connect_async(dsn: str, *, application: str) -> psycopg.AsyncConnection[Any]:
    """The same for an event loop, in autocommit. Raises what psycopg's connect raises."""
    opened = arguments(dsn) | {"application_name": application, "autocommit": True}
    conn, settings = await startup_options.connect_async(opened)
    if settings:
        await conn.execute(*startup_options.statement(settings, local=False))
    return conn


def unreachable(which: str, connection: str, fault: psycopg.OperationalError) -> Transient:
    """A database that no connection could be made to (`which` says so), and why."""
    said = str(fault)
    remedy = f"Check {connection} (host, port, login) and that the server runs."
    if "certificate" in said:
        remedy = (
            f"Let sslrootcert in the extra of {connection} name the certificate of the authority that signed "
            "the server's, or correct the host: verify-full wants the name in the certificate."
        )
    return Transient(f"{which} {said.splitlines()[0]}", remedy)


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

"""A session at a job's source that reads and does nothing else, and what its faults mean.

libpq sends a query without parameters by the simple protocol, which takes several statements: `commit; delete ..` would
leave a READ ONLY transaction. So everything of a job's goes by the extended protocol, and its text must be one
statement by itself before it is put between others. What READ ONLY cannot stop is a function that opens a connection of
its own (dblink): only the rights of the login can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors
from psycopg import sql as composed

from nightmill.domain.errors import NightmillError, SourceError, Transient
from nightmill.domain.suggestions import listed
from nightmill.storage import source_values, startup_options
from nightmill.storage.connection_parameters import parameters
from nightmill.storage.session import unreachable

# Versions and values are written as text: they must not depend on the settings of a database or login.
_FORMATS = (("timezone", "UTC"), ("datestyle", "ISO"), ("intervalstyle", "postgres"), ("bytea_output", "hex"))
# The session is idle while what it has read is counted and stored; if we vanish, the keepalives end it.
_PATIENT = "-c idle_in_transaction_session_timeout=0"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is read: its `name` in messages and `key` in job.yaml, and the statement timeout in seconds."""

    name: str
    key: str
    conn_id: str
    timeout_s: int

    def fault(self, cause: str, remedy: str) -> SourceError:
        """A fault in the words for the source query."""
        return SourceError(cause.replace("source query", self.name), remedy)


def connect(dsn: str, asked: Asked) -> psycopg.Connection[Any]:
    """A READ ONLY repeatable-read session with the statement timeout set. Raises Transient."""
    try:
        # Without an encoding of ours a database in SQL_ASCII hands out bytes instead of text.
        opened = parameters(dsn, defaults=_PATIENT)
        names = {"application_name": "nightmill freeze", "client_encoding": "UTF8"}
        conn, own = startup_options.connect(opened | names)
    except psycopg.OperationalError as fault:
        which = f"The source database behind {asked.conn_id!r} cannot be reached:"
        raise unreachable(which, f"the Airflow connection {asked.conn_id}", fault) from fault
    conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    conn.read_only = True
    source_values.register(conn)
    settings = [*own, *_FORMATS, ("statement_timeout", f"{asked.timeout_s}s")]
    conn.execute(*startup_options.statement(settings, local=True))
    return conn


def columns_of(
    conn: psycopg.Connection[Any], query: composed.SQL, values: Mapping[str, Any] | None
) -> Sequence[psycopg.Column]:
    """The columns of a query, which is declared as a cursor and not run. Fails for all that is not one SELECT: the
    server takes one statement, and DECLARE takes nothing else."""
    with conn.cursor("probe") as probe:
        probe.execute(query, values)
        return tuple(probe.description or ())


def refuse_doubled_columns(asked: Asked, columns: Sequence[psycopg.Column], used: Iterable[str]) -> None:
    """Raise SourceError where a column that is used has the name of another one: nobody could tell which is meant."""
    counts = Counter(column.name for column in columns)
    doubled = sorted(name for name in set(used) if counts[name] > 1)
    if doubled:
        raise asked.fault(
            f"The source query returns {counts[doubled[0]]} columns that are called {doubled[0]!r}"
            f"{f' (and more than one {listed(map(repr, doubled[1:]))})' if doubled[1:] else ''}.",
            f"Name the one that is meant in {asked.key}, and leave out or rename the other: "
            f"<table>.{doubled[0]} as {doubled[0]}.",
        )


@contextmanager
def explained(asked: Asked, *, on_rows: bool) -> Iterator[None]:
    """SourceError or Transient with a remedy for what the database says. With `on_rows` its message can quote a row,
    and is not repeated."""
    try:
        yield
    except psycopg.Error as fault:
        raise _told(asked, fault, on_rows) from (None if _may_quote(fault, on_rows) else fault)


def _may_quote(fault: psycopg.Error, on_rows: bool) -> bool:
    """Whether the server's own message can hold a piece of a row."""
    if isinstance(fault, psycopg.ProgrammingError):
        return on_rows
    return not isinstance(fault, psycopg.OperationalError) and type(fault) not in _ENDED_BY


def _told(asked: Asked, fault: psycopg.Error, on_rows: bool) -> NightmillError:
    if type(fault) in _ENDED_BY:
        setting = _ENDED_BY[type(fault)]
        return asked.fault(
            f"The server of {asked.conn_id!r} ended the session of the source query by its {setting}.",
            f"Raise it for this login: alter role <the login of {asked.conn_id}> set {setting} = 0, or put "
            f'{{"options": "-c {setting}=0"}} into the extra of connection {asked.conn_id}.',
        )
    if isinstance(fault, errors.SerializationFailure | errors.QueryCanceled):
        return _cancelled(asked, fault)
    if isinstance(fault, errors.CharacterNotInRepertoire):
        return asked.fault(
            f"The source database behind {asked.conn_id!r} returns text that is not UTF-8: it stores bytes "
            "without an encoding (SQL_ASCII).",
            "Convert such columns in the source query from the encoding they were written in: "
            "convert_from(convert(convert_to(<column>, 'SQL_ASCII'), 'LATIN1', 'UTF8'), 'UTF8') as <column>.",
        )
    if isinstance(fault, psycopg.OperationalError):
        return Transient(
            f"The source database behind {asked.conn_id!r} ended the connection ({type(fault).__name__}).",
            "Trying again reads the source anew; look into the server's log if it stays.",
        )
    if isinstance(fault, psycopg.ProgrammingError):
        return _of_the_text(asked, fault, on_rows)
    return _fails_on_data(asked, fault)


def _cancelled(asked: Asked, fault: psycopg.Error) -> NightmillError:
    if isinstance(fault, errors.SerializationFailure):
        return Transient(
            f"The replica behind {asked.conn_id!r} cancelled the {asked.name}: it had to go on with what its primary "
            "had changed.",
            "Trying again reads the source anew; if it stays, turn hot_standby_feedback on, raise "
            "max_standby_streaming_delay, or read the primary.",
        )
    if "user request" in (fault.diag.message_primary or ""):
        return Transient(
            f"Somebody cancelled the {asked.name} at the server of {asked.conn_id!r}.",
            "Trying again reads the source anew; ask who runs that server if it stays.",
        )
    return asked.fault(
        f"The source query ran longer than {asked.timeout_s} s.",
        "Make it faster, or raise source.statement_timeout_s.",
    )


_ENDED_BY: Mapping[type[psycopg.Error], str] = {
    errors.IdleInTransactionSessionTimeout: "idle_in_transaction_session_timeout",
    errors.IdleSessionTimeout: "idle_session_timeout",
    errors.TransactionTimeout: "transaction_timeout",
}


def _of_the_text(asked: Asked, fault: psycopg.ProgrammingError, on_rows: bool) -> SourceError:
    said = (fault.diag.message_primary or str(fault)).splitlines()[0]
    if "parameter missing" in str(fault):
        return asked.fault(
            f"The source query uses a parameter that this run does not have ({fault}).",
            "Fill in the data interval when triggering by hand; other parameters are declared in source.filters.",
        )
    if isinstance(fault, errors.InsufficientPrivilege):
        return asked.fault(
            f"The login of connection {asked.conn_id!r} may not read what the source query reads: {said}.",
            f"Grant it: grant select on <table> to <the login of {asked.conn_id}>.",
        )
    if isinstance(fault, errors.SyntaxError) and fault.diag.source_function == "exec_parse_message":  # in any language
        return asked.fault(
            "The source query fails: syntax error: it holds more than one statement.",
            f"Leave one SELECT in {asked.key} of job.yaml, and nothing behind it.",
        )
    if on_rows:  # a query that runs on no rows fails on a row: its message can quote that row
        return _fails_on_data(asked, fault)
    meant = f" ({fault.diag.message_hint.rstrip('.')})" if fault.diag.message_hint else ""
    return asked.fault(
        f"The source query fails: {said}{meant}.",
        "Run the query of job.yaml in psql and mend it. A literal % is written %%.",
    )


def _fails_on_data(asked: Asked, fault: psycopg.Error) -> SourceError:
    """Without the database's message and without the original: both can quote values."""
    return asked.fault(
        f"The source query fails on the data or writes something ({type(fault).__name__}, SQLSTATE {fault.sqlstate}).",
        "Run the query of job.yaml in psql and mend it: the session is read only.",
    )

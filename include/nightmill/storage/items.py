"""The frozen manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from psycopg import errors
from psycopg import sql as composed
from psycopg.types.string import BytesBinaryDumper

from nightmill.domain.errors import SourceError
from nightmill.storage import partitions, sources, sql
from nightmill.storage.partitions import Unattached
from nightmill.storage.session import Connection

# ordinal, key, source_id, source_version, content_hash, tenant, domain, tokens, skip_reason, skip_class, skip_message,
# required
ItemRow = tuple[int, bytes, str, str, bytes, str, str, int, str | None, str | None, str | None, bool]

# Items and outcomes are indexed in the same order: at a million each, merging them costs half of hashing and sorting.
_MERGE = "set local enable_hashjoin = off"

_COLUMN_TYPES = (
    "int8", "int8", "bytea", "text", "text", "bytea", "text", "text", "int4", "text", "text", "text", "bool",
)  # fmt: skip


def copy_in(conn: Connection, table: composed.Identifier, batch_id: int, rows: Iterable[ItemRow]) -> int:
    """Stream manifest rows into an unattached partition. Returns their number. Raises SourceError where Postgres cannot
    store an id, version, tenant or domain."""
    statement = composed.SQL(
        "copy {} (batch_id, ordinal, key, source_id, source_version, content_hash, tenant, domain, tokens, "
        "skip_reason, skip_class, skip_message, required) from stdin (format binary)"
    ).format(table)
    count = 0
    try:
        with conn.cursor() as cursor:
            cursor.adapters.register_dumper(bytes, BytesBinaryDumper)  # else bytea gets one that is not compiled
            with cursor.copy(statement) as copy:
                copy.set_types(_COLUMN_TYPES)
                for row in rows:
                    copy.write_row((batch_id, *row))
                    count += 1
    except (UnicodeEncodeError, errors.CharacterNotInRepertoire):  # their text can quote values
        raise SourceError(
            "An id, version, tenant or domain of the source holds a NUL character or half a surrogate pair, which "
            "Postgres cannot store.",
            "Correct it at its origin, or leave such rows out in the source query.",
        ) from None
    return count


def index(conn: Connection, made: Unattached) -> None:
    """Index the filled partition. Raises SourceError when a source id stands twice (names up to three) or is too long
    for an index."""
    try:
        with conn.transaction():
            partitions.index(conn, made.parent, made.batch_id)
    except errors.UniqueViolation:  # its text quotes one of them only
        doubled = conn.execute(sql.text("item/doubled_ids").format(items=made.table)).fetchall()
        raise sources.doubled_ids(source_id for (source_id,) in doubled) from None
    except errors.ProgramLimitExceeded:  # Postgres indexes values of at most 2,704 bytes
        raise SourceError(
            "The source returns an id of more than 2,704 bytes, which no index can hold.",
            "Make it shorter in the source query: md5(<column>) as <column>, and keep the long one as another column.",
        ) from None


def refuse_changed_contents(conn: Connection, table: composed.Identifier) -> None:
    """Raise SourceError when one version has another content than an earlier result. Names up to three ids. Runs on
    the unattached partition, so nothing was published or planned yet."""
    changed = conn.execute(sql.text("item/changed_contents").format(items=table)).fetchall()
    if changed:
        raise changed_contents(changed)


def changed_contents(items: Iterable[tuple[str, str]]) -> SourceError:
    """What is said about items (source id, version) whose version has another content than an earlier result."""
    names = ", ".join(f"{source_id!r} (version {version})" for source_id, version in items)
    return SourceError(
        f"The source changed the content of {names} without changing the version.",
        "Let source.columns.version change with the content, or leave it out to use the content hash.",
    )


def unsettled(conn: Connection, batch_id: int) -> Iterator[tuple[int, int]]:
    """(ordinal, prompt tokens) of the items without an outcome in order, streamed."""
    conn.execute(_MERGE)
    with conn.cursor(name="unsettled") as cursor:
        cursor.itersize = 20_000
        cursor.execute(sql.text("item/unsettled"), {"batch_id": batch_id})
        yield from cursor

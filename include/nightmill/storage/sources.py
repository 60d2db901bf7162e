"""Reading a job's source rows: one READ ONLY repeatable-read snapshot, streamed, with bound values."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
from psycopg import sql as composed

from nightmill.domain.errors import SourceError
from nightmill.domain.suggestions import aside
from nightmill.jobs.filters import with_types
from nightmill.jobs.settings.job import Source, SourceColumns
from nightmill.storage import source_session
from nightmill.storage.source_session import Asked, explained
from nightmill.storage.statement_end import without_end

# Rows of one fetch: as many as make some MiB, by the size of those before, and never more than _MOST_ROWS: those that
# come can be much larger.
_FIRST_ROWS, _MOST_ROWS, _PAGE_BYTES = 16, 256, 8 << 20
_WEIGHED = 16  # every such row
# Types (OIDs) of names that need no cast: text, varchar, integers, uuid; and JSON, whose texts have no quotes here.
_PLAIN = frozenset({25, 1043, 21, 23, 20, 2950, 114, 3802})
_BOOLEAN = 16
# In byte order, as a ledger compares them. Rows without an id are refused when they are read.
_DOUBLED_IDS = """
select source_id from (select {id}::text collate "C" as source_id from ({query}
) as source {first}) as ids
where source_id ~ '\\S' group by source_id having count(*) > 1 order by source_id limit 3
"""


class SourceRow(msgspec.Struct, frozen=True, gc=False):
    """One source document. `values` are the query's columns that the contract uses.

    A Struct, because one is made per item: a frozen dataclass takes ten times as long to make.
    """

    source_id: str
    source_version: str | None
    tenant: str
    domain: str
    required: bool
    values: dict[str, Any]


class SourceSnapshot:
    """An open snapshot of a source. Use as a context manager; rows come ordered by (tenant, domain, source id)."""

    def __init__(self, dsn: str, source: Source, payload_columns: tuple[str, ...]) -> None:
        self._source = source
        self._payload_columns = payload_columns
        self._query = composed.SQL(without_end(with_types(source.query, source.filters)))
        self._asked = Asked("source query", "source.query", source.conn_id, source.statement_timeout_s)
        self._conn = source_session.connect(dsn, self._asked)
        row = self._conn.execute("select pg_catalog.pg_current_snapshot()::text").fetchone()
        assert row is not None
        self.name: str = row[0]

    def __enter__(self) -> SourceSnapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self._conn.close()

    def rows(self, parameters: Mapping[str, Any], limit: int | None) -> Iterator[SourceRow]:
        """Stream the rows. Raises SourceError naming a missing column, parameter or a fault of the query."""
        columns = self._source.columns
        types = self._probe(parameters)
        written = [name for name in _roles(columns) if types[name] not in _PLAIN]
        ordered = composed.SQL("select source.*{} from ({}\n) as source order by {} limit {}").format(
            composed.SQL("").join(composed.SQL(", {}::text").format(_column(name)) for name in written),
            self._query, _order(columns), composed.Literal(limit),
        )  # fmt: skip
        with explained(self._asked, on_rows=True), self._conn.cursor("source_rows") as cursor:
            cursor.execute(ordered, parameters)
            names = [column.name for column in cursor.description or ()]
            row_of = _row_maker(names, written, columns, self._payload_columns)
            yield from map(row_of, chain.from_iterable(_pages(cursor.fetchmany)))

    def refuse_doubled_ids(self, parameters: Mapping[str, Any], limit: int | None) -> None:
        """Raise SourceError when an id stands twice among the rows. Runs the query once more; only ids are sorted."""
        self._probe(parameters)
        columns = self._source.columns
        first: composed.Composable = composed.SQL("")
        if limit is not None:
            first = composed.SQL("order by {} limit {}").format(_order(columns), composed.Literal(limit))
        doubled = composed.SQL(_DOUBLED_IDS).format(id=_column(columns.id), query=self._query, first=first)
        with explained(self._asked, on_rows=True):
            found = self._conn.execute(doubled, parameters, prepare=True).fetchall()
        if found:
            raise doubled_ids(source_id for (source_id,) in found)

    def _probe(self, parameters: Mapping[str, Any]) -> dict[str, int]:
        """Run the query on no rows, by itself and as it is read: what fails here is its text. Returns the types (OIDs)
        of its columns."""
        with explained(self._asked, on_rows=False):
            have = source_session.columns_of(self._conn, self._query, parameters)
            nothing = composed.SQL("select * from ({}\n) as source limit 0").format(self._query)
            self._conn.execute(nothing, parameters, prepare=True)
        types = {column.name: column.type_code for column in have}
        _require_columns(frozenset(types), self._source.columns, self._payload_columns)
        _refuse_no_boolean(types, self._source.columns.required)
        used = (*_roles(self._source.columns), *self._payload_columns)
        source_session.refuse_doubled_columns(self._asked, have, used)
        return types


def _pages(fetch: Callable[[int], list[Sequence[Any]]]) -> Iterator[list[Sequence[Any]]]:
    """All rows, so many at a time that memory stays small whatever their size. Iterating a cursor costs a call for each
    row."""
    wanted = _FIRST_ROWS
    while page := fetch(wanted):
        yield page
        weighed = page[::_WEIGHED]
        size = sum(map(_weight, weighed)) / len(weighed)
        wanted = max(1, min(_MOST_ROWS, wanted * 2, int(_PAGE_BYTES / size)))


def _weight(value: Any) -> int:
    """About as many bytes as a value takes."""
    if isinstance(value, dict):
        return 64 + sum(map(_weight, value)) + sum(map(_weight, value.values()))
    if isinstance(value, list | tuple):
        return 64 + sum(map(_weight, value))
    return sys.getsizeof(value)


def doubled_ids(ids: Iterable[str]) -> SourceError:
    """What is said about ids that stand twice."""
    return SourceError(
        f"The source returns {', '.join(map(repr, ids))} more than once.",
        "Make source.columns.id unique in the source query: add a condition, or join ids that belong together.",
    )


def _order(columns: SourceColumns) -> composed.Composable:
    names = [name for name in (columns.tenant, columns.domain, columns.id) if name]
    parts = [composed.SQL('{}::text collate "C"').format(_column(name)) for name in names]
    return composed.SQL(", ").join(parts)


def _column(name: str) -> composed.Identifier:
    return composed.Identifier("source", name)


def _roles(columns: SourceColumns) -> tuple[str, ...]:
    """The columns whose values become names in the ledger: as text, as Postgres writes it."""
    return tuple(dict.fromkeys(filter(None, (columns.id, columns.version, columns.tenant, columns.domain))))


def _require_columns(have: frozenset[str], columns: SourceColumns, payload_columns: tuple[str, ...]) -> None:
    roles = {
        columns.id,
        columns.text,
        *filter(None, (columns.version, columns.tenant, columns.domain, columns.required)),
    }
    missing = sorted((roles | set(payload_columns)) - have)
    if missing:
        raise SourceError(
            f"The source query returns no column {', '.join(repr(name) + aside(name, have) for name in missing)}; "
            f"it returns {', '.join(sorted(have))}.",
            "Add it to the query, or correct source.columns in job.yaml and the variables in prompt.md.",
        )


def _refuse_no_boolean(types: Mapping[str, int], required: str | None) -> None:
    if required is not None and types[required] != _BOOLEAN:
        raise SourceError(
            f"The column {required!r} of the source is no boolean, and source.columns.required names it.",
            "Write a condition in the source query, such as `priority = 'high' as must_have`, or cast it: "
            f"{required}::boolean as {required}.",
        )


def _row_maker(
    names: Sequence[str], written: Sequence[str], columns: SourceColumns, payload_columns: tuple[str, ...]
) -> Callable[[Sequence[Any]], SourceRow]:
    """How to read a row of a query that returns `names`, the last of them being `written` as text. Everything is looked
    up once: rows come by the million."""
    own = len(names) - len(written)
    at = {name: index for index, name in enumerate(names[:own])}
    as_text = at | {name: own + index for index, name in enumerate(written)}
    source_id, version, tenant, domain = (
        as_text[name] if name else None for name in (columns.id, columns.version, columns.tenant, columns.domain)
    )
    required = at[columns.required] if columns.required else None
    payload = [(name, at[name]) for name in payload_columns]

    def row_of(row: Sequence[Any]) -> SourceRow:
        return SourceRow(
            _named(_required(row, source_id, columns.id, _NO_ID), columns.id),
            None if version is None else _required(row, version, columns.version, _NO_VERSION),
            "" if tenant is None or row[tenant] is None else _text(row[tenant]),
            "" if domain is None or row[domain] is None else _text(row[domain]),
            required is not None and row[required] is True,
            {name: row[index] for name, index in payload},
        )

    return row_of


def _required(row: Sequence[Any], index: int | None, name: str | None, remedy: str) -> str:
    value = None if index is None else row[index]
    if value is None:
        raise SourceError(f"The source returns a row whose {name!r} is null.", remedy)
    return _text(value)


def _text(value: Any) -> str:
    """A name of one of the types that are not cast."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | float | dict | list) else str(value)


def _named(source_id: str, name: str) -> str:
    if not source_id.strip():
        raise SourceError(f"The source returns a row whose {name!r} is empty or only white space.", _NO_ID)
    return source_id


_NO_ID = "Leave such rows out in the source query."
_NO_VERSION = "Give each row a version, or leave source.columns.version out to use the content hash."

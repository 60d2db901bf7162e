"""Field accuracy of a batch against known answers."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from psycopg import sql as composed
from psycopg.types.json import Jsonb

from nightmill.domain.errors import SourceError
from nightmill.domain.suggestions import aside
from nightmill.jobs.settings.gate_settings import Gold
from nightmill.storage import source_session, sql
from nightmill.storage.session import Connection
from nightmill.storage.source_session import Asked, explained
from nightmill.storage.statement_end import without_end


@dataclass(frozen=True, slots=True)
class FieldAccuracy:
    """How many of the rows that have a known answer hold it."""

    field: str
    known: int
    right: int


def load(conn: Connection, source_dsn: str, conn_id: str, gold: Gold, *, statement_timeout_s: int) -> int:
    """Copy the known answers from the source into this session's temporary table; returns their number."""
    conn.execute(sql.text("compare/make_gold"))
    columns = composed.SQL(", ").join(
        composed.SQL("{}, to_jsonb({})").format(composed.Literal(field), composed.Identifier(field))
        for field in gold.fields
    )
    query = composed.SQL(without_end(gold.query))
    wrapped = composed.SQL("select source_id::text, jsonb_build_object({}) from ({}\n) as gold").format(columns, query)
    asked = Asked("gold query", "gold.query", conn_id, statement_timeout_s)
    count = 0
    with closing(source_session.connect(source_dsn, asked)) as source:
        with explained(asked, on_rows=False):
            columns_there = source_session.columns_of(source, query, None)
        _require_columns(frozenset(one.name for one in columns_there), gold)
        source_session.refuse_doubled_columns(asked, columns_there, ("source_id", *gold.fields))
        with (
            explained(asked, on_rows=True),
            source.cursor("gold") as rows,
            conn.cursor().copy("copy pg_temp.gold from stdin") as copy,
        ):
            for source_id, answers in rows.execute(wrapped):
                copy.write_row((source_id, Jsonb(answers)))
                count += 1
    return count


def _require_columns(have: frozenset[str], gold: Gold) -> None:
    missing = sorted({"source_id", *gold.fields} - have)
    if missing:
        raise SourceError(
            f"The gold query returns no column {', '.join(repr(name) + aside(name, have) for name in missing)}; it "
            f"returns {', '.join(sorted(have))}.",
            "Add it to gold.query of job.yaml, or remove it from gold.fields.",
        )


def accuracy(conn: Connection, view: str, batch_id: int, field: str) -> FieldAccuracy:
    """Compare one field of a batch's rows with the loaded answers. An array of known answers means any of these,
    unless the field itself is an array."""
    row = conn.execute(
        sql.text("compare/gold_accuracy").format(rows=sql.rows_table(view), field=composed.Identifier(field)),
        {"batch_id": batch_id, "field": field},
    ).fetchone()
    assert row is not None
    return FieldAccuracy(field, row[0], row[1])

"""Field accuracy of a batch against known answers."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg import sql as composed
from psycopg.types.json import Jsonb

from nightmill.domain.errors import SourceError
from nightmill.domain.job import Gold
from nightmill.storage import sql
from nightmill.storage.connection_parameters import parameters
from nightmill.storage.ledger import Connection


@dataclass(frozen=True, slots=True)
class FieldAccuracy:
    """How many of the rows that have a known answer hold it."""

    field: str
    known: int
    right: int


def load(conn: Connection, source_dsn: str, gold: Gold) -> int:
    """Copy the known answers from the source into this session's temporary table; returns their number."""
    conn.execute(sql.text("gold_table"))
    columns = composed.SQL(", ").join(
        composed.SQL("{}, to_jsonb({})").format(composed.Literal(field), composed.Identifier(field))
        for field in gold.fields
    )
    wrapped = composed.SQL("select source_id::text, jsonb_build_object({}) from ({}\n) as gold").format(
        columns, composed.SQL(gold.query.strip().rstrip(";"))
    )
    count = 0
    try:
        with (
            psycopg.connect(**parameters(source_dsn)) as source,
            source.cursor("gold") as rows,
            conn.cursor().copy("copy pg_temp.gold from stdin") as copy,
        ):
            for source_id, answers in rows.execute(wrapped):
                copy.write_row((source_id, Jsonb(answers)))
                count += 1
    except psycopg.ProgrammingError as fault:
        raise SourceError(
            f"The gold query fails: {(fault.diag.message_primary or type(fault).__name__).splitlines()[0]}.",
            "Run gold.query of job.yaml in psql; it must return source_id and each of gold.fields.",
        ) from fault
    return count


def accuracy(conn: Connection, view: str, batch_id: int, field: str) -> FieldAccuracy:
    """Compare one field of a batch's rows with the loaded answers. An array of known answers means any of these,
    unless the field itself is an array."""
    row = conn.execute(
        sql.text("gold_accuracy").format(rows=sql.rows_table(view), field=composed.Identifier(field)),
        {"batch_id": batch_id, "field": field},
    ).fetchone()
    assert row is not None
    return FieldAccuracy(field, row[0], row[1])

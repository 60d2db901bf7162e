"""What two results differ in, counted in the database. Texts leave it for the measures of single fields only, and go
no further than the process that compares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql as composed

from nightmill.domain.comparison import BANDS, Cell, FieldRule, Rows, Side
from nightmill.domain.pricing import Price
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.storage import partitions, publications, sql
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

_AT_A_TIME = 2_000  # rows, from the server's cursor
_NOT_NEEDED = composed.SQL("array[]::jsonb[]")


@dataclass(frozen=True, slots=True)
class Sides:
    """A batch beside what it is compared with. `staged` and `shown` are relations with the columns of the rows; most of
    the shown ones come from the batch `baseline`."""

    view: str
    batch_id: int
    staged: composed.Composable
    shown: composed.Composable
    baseline: int | None


def of_view(conn: Connection, batch: Batch, baseline: int | None) -> Sides:
    """A batch beside the answers that readers see now: in by_interval, of its interval, and of those that it covers."""
    shown: composed.Composable = composed.SQL("(select * from {} where gap_reason is null)").format(
        sql.published(batch.view_name)
    )
    if publications.mode_of(conn, batch.view_name) is PublishMode.BY_INTERVAL:
        shown = composed.SQL(
            "(select * from {} as answers where data_interval_start >= {} and data_interval_end <= {})"
        ).format(shown, composed.Literal(batch.data_interval_start), composed.Literal(batch.data_interval_end))
    return Sides(batch.view_name, batch.batch_id, _rows_of(conn, batch.view_name, batch.batch_id), shown, baseline)


def of_batches(conn: Connection, view: str, batch_id: int, other: int) -> Sides:
    """A batch beside another one of the same view."""
    return Sides(view, batch_id, _rows_of(conn, view, batch_id), _rows_of(conn, view, other), other)


def _rows_of(conn: Connection, view: str, batch_id: int) -> composed.Composable:
    """A batch's answers, wherever they lie: in one part only, where they stand once. Its number is written out, so that
    no other part is read."""
    held = partitions.holding(conn, f"rows_{view}", batch_id)
    return composed.SQL("(select * from {} where batch_id = {} and part_id = {} and gap_reason is null)").format(
        sql.rows_table(view), composed.Literal(batch_id), composed.Literal(batch_id if held is None else held)
    )


def rows(conn: Connection, sides: Sides, rules: Sequence[FieldRule]) -> Iterator[Rows]:
    """Rows of either side: those that are alike together, and one by one where a measure has to see the values."""
    closer = [rule for rule in rules if rule.needs_values]
    query = sql.text("compare/rows").format(
        staged=sides.staged,
        shown=sides.shown,
        differs=composed.SQL(", ").join(_differs(rule) for rule in rules),
        old=_values_where_different("shown", closer),
        new=_values_where_different("staged", closer),
    )
    names = [rule.name for rule in closer]
    for tenant, domain, band, is_new, is_old, cited, before, differs, old, new, count in _read(conn, query, sides):
        yield Rows(
            cell=Cell(tenant, domain, band),
            is_new=is_new,
            is_old=is_old,
            cited=cited,
            cited_before=before,
            differs=differs,
            old=dict(zip(names, old, strict=True)) if old is not None else None,
            new=dict(zip(names, new, strict=True)) if new is not None else None,
            count=count,
        )


def known(
    conn: Connection, sides: Sides, fields: Sequence[str]
) -> Iterator[tuple[Cell, dict[str, Any], dict[str, Any], dict[str, Any] | None]]:
    """Items of the batch that `gold.load` knows the right answers of: those, the batch's, and the shown ones."""
    query = sql.text("compare/with_gold").format(
        staged=sides.staged,
        shown=sides.shown,
        new=_values("staged", fields),
        old=_values("shown", fields),
    )
    for tenant, domain, band, right, new, old in _read(conn, query, sides):
        then = None if old is None else dict(zip(fields, old, strict=True))
        yield Cell(tenant, domain, band), right, dict(zip(fields, new, strict=True)), then


def items(conn: Connection, batch_id: int, price: Price | None) -> Iterator[tuple[Cell, Side]]:
    """What became of a batch's items, and what their attempts used; nothing for a batch that retention has emptied."""
    values = {"batch_id": batch_id, "bands": list(BANDS), **_per_token(price)}
    for tenant, domain, band, *numbers in conn.execute(sql.text("compare/items"), values):
        yield Cell(tenant, domain, band), Side(*numbers)


def seconds(conn: Connection, batch_id: int) -> float | None:
    """From the freeze of a batch to its last settled item; None for one that retention has emptied."""
    row = conn.execute(sql.text("compare/seconds"), {"batch_id": batch_id}).fetchone()
    return row[0] if row else None


def _read(conn: Connection, query: composed.Composed, sides: Sides) -> Iterator[tuple[Any, ...]]:
    values = {"batch_id": sides.batch_id, "baseline": sides.baseline, "bands": list(BANDS)}
    with conn.cursor("compared") as cursor:
        cursor.itersize = _AT_A_TIME
        yield from cursor.execute(query, values)


def _differs(rule: FieldRule) -> composed.Composable:
    name = composed.Identifier(rule.name)
    return composed.SQL("staged.{} is distinct from shown.{}").format(name, name)


def _values_where_different(side: str, rules: Sequence[FieldRule]) -> composed.Composable:
    if not rules:
        return _NOT_NEEDED
    parts = [
        composed.SQL("case when {} then to_jsonb({}) end").format(_differs(rule), composed.Identifier(side, rule.name))
        for rule in rules
    ]
    return composed.SQL("array[{}]").format(composed.SQL(", ").join(parts))


def _values(side: str, fields: Sequence[str]) -> composed.Composable:
    parts = [composed.SQL("to_jsonb({})").format(composed.Identifier(side, name)) for name in fields]
    return composed.SQL("array[{}]::jsonb[]").format(composed.SQL(", ").join(parts))


def _per_token(price: Price | None) -> dict[str, float]:
    """US dollars per token through the Batch API, by the names of compare/items.sql; all 0 where nobody knows."""
    if price is None:
        return dict.fromkeys(("input", "cached", "cache_write", "output"), 0.0)
    written = price.input_per_million if price.cache_write_per_million is None else price.cache_write_per_million
    share = (1 - price.batch_discount) / 1_000_000
    return {
        "input": float(price.input_per_million * share),
        "cached": float(price.cached_input_per_million * share),
        "cache_write": float(written * share),
        "output": float(price.output_per_million * share),
    }

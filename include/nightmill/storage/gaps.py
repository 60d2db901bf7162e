"""Gaps of a batch: counted by what its job's rules ask for, the rows that stand in for them, and what is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from nightmill.jobs.rules.gaps import Facts, Gap, Ruled
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.storage import fence, publications, sql, views
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection, refusals


@dataclass(frozen=True, slots=True)
class Replaced:
    """The part that readers see, and its batch. Not `alone`: the part may hold rows of other batches too."""

    part_id: int
    batch_id: int
    alone: bool


def of_batch(conn: Connection, batch_id: int) -> list[Gap]:
    """The most frequent first."""
    with conn.cursor(row_factory=class_row(Gap)) as cursor:
        return cursor.execute(sql.text("gap/of_batch"), {"batch_id": batch_id}).fetchall()


def show(conn: Connection, batch: Batch, ruled: Sequence[Ruled]) -> dict[str, int]:
    """Write the rows that stand in for gaps, in place of those that did before; returns how many there are of each
    kind. `batch` must be VALIDATING. The caller ends the transaction.

    In by_key the newest answer to an id is shown until a newer one comes, so nothing stands in its place.
    """
    fence.enter(conn, batch.holder)
    with refusals():
        conn.execute(sql.text("gap/drop_rows"), {"batch_id": batch.batch_id})
        shown = [one for one in ruled if one.show != "absent"]
        if not shown:
            return {}
        columns = views.existing_columns(conn, batch.view_name)
        parts: dict[str, Any] = {"rows": sql.rows_table(batch.view_name)}
        parts |= {"names": sql.names(columns), "as_shown": sql.typed(columns, "shown")}
        values = {"batch_id": batch.batch_id, **_rules(shown)}
        counts, before = {}, replaced(conn, batch)
        by_key = bool(before) and publications.mode_of(conn, batch.view_name) is PublishMode.BY_KEY
        values["kept_part"] = before[0].part_id if by_key else None
        if before and not by_key and any(one.show == "previous" for one in shown):
            counts["previous"] = 0
            for one in before:
                taken = {"shown_part": one.part_id, "shown_batch": None if one.alone else one.batch_id}
                query = sql.text("gap/add_previous_rows").format(**parts)
                counts["previous"] += conn.execute(query, values | taken).rowcount
        counts["null_row"] = conn.execute(sql.text("gap/add_null_rows").format(**parts), values).rowcount
    return counts


def _rules(ruled: Sequence[Ruled]) -> dict[str, list[str]]:
    return {
        "buckets": [one.gap.bucket for one in ruled],
        "kinds": [one.gap.kind or "" for one in ruled],
        "codes": [one.gap.code or "" for one in ruled],
        "tenants": [one.gap.tenant for one in ruled],
        "shows": [one.show for one in ruled],
    }


def replaced(conn: Connection, batch: Batch) -> list[Replaced]:
    """What the batch would replace for readers: in by_interval all intervals that it covers, the newest first. Empty
    where they see nothing in its place."""
    shown = publications.current(conn, batch.view_name)
    if shown is None:
        return []
    if shown.mode is not PublishMode.BY_INTERVAL:
        return [] if shown.part_id is None else [Replaced(shown.part_id, shown.batch_id, alone=True)]
    interval = (batch.data_interval_start, batch.data_interval_end)
    listed = reversed(publications.parts(conn, shown.publish_seq))
    return [Replaced(one.part_id, one.batch_id, alone=False) for one in listed if one.lies_within(*interval)]


def record(conn: Connection, batch: Batch, facts: Facts) -> None:
    """Keep the facts with the batch."""
    fence.enter(conn, batch.holder)
    conn.execute(sql.text("gap/record_facts"), {"batch_id": batch.batch_id, "facts": Jsonb(facts)})


def facts(conn: Connection, batch_id: int) -> Facts | None:
    """What was recorded; None before the batch was reconciled."""
    row = conn.execute(sql.text("gap/get_facts"), {"batch_id": batch_id}).fetchone()
    return row[0] if row else None

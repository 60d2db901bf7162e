"""What publishing by key costs: seconds for each million rows that are shown, and memory that does not grow."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.figures import note
from support.ledger import OUTPUT, Ledger, apply, definition

from nightmill.storage import by_key, publications
from nightmill.storage.batches import Batch

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
SIZES = [(20_000, 1_000), pytest.param((1_000_000, 10_000), marks=pytest.mark.slow)]
MOST_S, MOST_MEMORY = 60, 200 << 20
_FILL = """
insert into nightmill.rows_notes (part_id, batch_id, ordinal, source_id, source_version, tenant, domain, result_id,
    reused, model, prompt_version, answered_at, data_interval_start, data_interval_end, title, pages)
select batch_id, batch_id, n, 'doc-' || n, '1', 'north', 'law', batch_id * 1000000 + n, false,
    'echo-1', 'p', now(), data_interval_start, data_interval_end, repeat(md5(n::text), 7), n
from generate_series(0, %s - 1) as n, nightmill.batch
where batch_id = %s
"""


def carrying(ledger: Ledger, day: int, rows: int) -> Batch:
    """A judged batch; its rows are there, its items are not."""
    batch = ledger.validating(1, rows=False, interval_start=FIRST + day * DAY, interval_end=FIRST + (day + 1) * DAY)
    with ledger.admin() as conn:
        conn.execute("set session_replication_role = replica")
        conn.execute(_FILL, (rows, batch.batch_id))
    ledger.sql("analyze nightmill.rows_notes")
    return replace(batch, counts={"accepted": rows})


def publish(ledger: Ledger, batch: Batch) -> tuple[float, float, int]:
    """Seconds of building and of the flip, and the most memory of its own that the server's process had (bytes)."""
    with ledger.writer() as conn:
        begun = time.perf_counter()
        built = by_key.build(conn, batch, ledger.job, publications.current(conn, "notes"))
        flips = time.perf_counter()
        publications.publish(conn, batch, "tester", lambda: None, built)
        conn.commit()
        over = time.perf_counter()
        status = Path(f"/proc/{conn.info.backend_pid}/status").read_text("ascii")
    own = next(line for line in status.splitlines() if line.startswith("RssAnon"))
    return flips - begun, over - flips, int(own.split()[1]) << 10


@pytest.mark.parametrize("size", SIZES)
def test_a_small_batch_is_published_beside_many_rows_in_seconds(ledger: Ledger, size: tuple[int, int]) -> None:
    shown, carried = size
    ledger.job = definition(output=OUTPUT + "    gone: bool | None = None\n", mode="by_key, deleted: gone")
    apply(ledger.admin_dsn, ledger.job)
    publish(ledger, carrying(ledger, 0, shown))
    batch = carrying(ledger, 1, carried)
    built, flipped, memory = publish(ledger, batch)
    note(
        f"by key, {shown} rows shown and {carried} carried: built in {built:.1f} s, flipped in "
        f"{flipped * 1000:.0f} ms, {memory >> 20} MB in the server's process"
    )
    counts = {batch.batch_id: carried, batch.batch_id - 1: shown - carried}
    assert dict(ledger.sql("select batch_id, count(*) from results.notes group by 1")) == counts
    assert built <= MOST_S
    assert memory <= MOST_MEMORY

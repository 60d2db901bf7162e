"""Hundreds of nights in one view, with maintenance every day: few parts, and reads that cost about as a table does."""

from __future__ import annotations

import io
import random
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import median, quantiles

import psycopg
import pytest
from support.figures import note
from support.ledger import Ledger, apply, definition

from nightmill.domain.maintenance import refuse_failed
from nightmill.storage import merging, publications
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection
from nightmill.upkeep import merging as stage

DAY = timedelta(days=1)
FIRST = datetime(2025, 1, 1, tzinfo=UTC)
SIZES = [(40, 50), pytest.param((400, 2_500), marks=pytest.mark.slow)]
MOST_ATTACHED = 32
ROUNDS, POINTS = 7, 2_000
SCANS = {
    "copy": "copy (select * from {}) to stdout",
    "count": "select count(*) from {}",
    "aggregate": "select sum(pages), max(title), min(source_id) from {}",
}
_FILL = """
insert into nightmill.rows_notes (part_id, batch_id, ordinal, source_id, source_version, tenant, domain, result_id,
    reused, model, prompt_version, answered_at, data_interval_start, data_interval_end, title, pages)
select batch_id, batch_id, n, 'doc-' || batch_id || '-' || n, '1', 'north', 'law', batch_id * 1000000 + n, false,
    'echo-1', 'p', now(), data_interval_start, data_interval_end, repeat(md5(n::text), 7), n
from generate_series(0, %s - 1) as n, nightmill.batch
where batch_id = %s
"""


@pytest.fixture
def nights(ledger: Ledger) -> Ledger:
    ledger.job = definition(mode="by_interval")
    apply(ledger.admin_dsn, ledger.job)
    return ledger


def night(ledger: Ledger, number: int, rows: int) -> Batch:
    """A judged batch; its rows are there, its items are not."""
    start = FIRST + number * DAY
    batch = ledger.validating(1, rows=False, interval_start=start, interval_end=start + DAY)
    with ledger.admin() as conn:
        conn.execute("set session_replication_role = replica")
        conn.execute(_FILL, (rows, batch.batch_id))
    return replace(batch, counts={"accepted": rows})


def publish(ledger: Ledger, batch: Batch) -> tuple[float, float]:
    """Seconds of building what was merged anew, and of the flip with its commit."""
    with ledger.writer() as conn:
        begun = time.perf_counter()
        built = merging.build_beside(conn, batch, publications.current(conn, "notes"))
        conn.commit()
        flips = time.perf_counter()
        publications.publish(conn, batch, "tester", lambda: None, built)
        conn.commit()
        return flips - begun, time.perf_counter() - flips


def sweep(ledger: Ledger) -> None:
    refuse_failed(stage.run({"notes": ledger.job}, ledger.admin_dsn))


def attached(ledger: Ledger) -> int:
    return int(ledger.sql("select count(*) from pg_inherits where inhparent = 'nightmill.rows_notes'::regclass")[0][0])


def in_turns(work: Callable[[str], object], rounds: int, pick: Callable[[list[float]], float]) -> dict[str, float]:
    """Seconds by table, measured in turns so that a busy moment hits both."""
    took: dict[str, list[float]] = {"results.notes": [], "public.plain": []}
    for _ in range(rounds):
        for table, seconds in took.items():
            begun = time.perf_counter()
            work(table)
            seconds.append(time.perf_counter() - begun)
    return {table: pick(seconds) for table, seconds in took.items()}


def scan(conn: Connection, statement: str) -> None:
    if statement.startswith("copy"):
        with conn.cursor().copy(statement) as copy:  # type: ignore[arg-type]
            sink = io.BytesIO()
            for block in copy:
                sink.seek(0)
                sink.write(block)
    else:
        conn.execute(statement)  # type: ignore[call-overload]


def reads(ledger: Ledger) -> dict[str, float]:
    """How much more the view costs than a plain table with the same rows and index."""
    ledger.sql("create table public.plain as select * from results.notes")
    ledger.sql("create unique index on public.plain (source_id, batch_id)")
    ledger.sql("grant select on public.plain to nightmill_reader")
    ledger.sql("vacuum analyze public.plain")
    ledger.sql("vacuum nightmill.rows_notes")
    found: dict[str, float] = {}
    ids = [one for (one,) in ledger.sql("select source_id from public.plain order by random() limit %s", POINTS)]
    drawn = random.Random(7)
    with ledger.reader(autocommit=True) as conn:
        for name, statement in SCANS.items():
            took = in_turns(lambda table, text=statement: scan(conn, text.format(table)), ROUNDS, min)
            found[name] = took["results.notes"] / took["public.plain"]
        for prepare in (True, False):
            took = in_turns(lambda table, how=prepare: point(conn, table, drawn.choice(ids), how), POINTS, median)
            found["prepared" if prepare else "unprepared"] = took["results.notes"] / took["public.plain"]
            found["prepared_us" if prepare else "more_ms"] = (
                took["results.notes"] * 1e6 if prepare else (took["results.notes"] - took["public.plain"]) * 1e3
            )
    return found


def point(conn: psycopg.Connection[tuple[object, ...]], table: str, source_id: str, prepare: bool) -> None:
    conn.execute(f"select title, pages from {table} where source_id = %s", (source_id,), prepare=prepare).fetchone()  # type: ignore[call-overload]


@pytest.mark.parametrize("size", SIZES)
def test_a_view_of_many_nights_reads_about_like_a_table(nights: Ledger, size: tuple[int, int]) -> None:
    count, rows = size
    most, flips = 0, []
    for number in range(count):
        flips.append(publish(nights, night(nights, number, rows))[1])
        most = max(most, attached(nights))
        sweep(nights)
    assert most <= MOST_ATTACHED
    built, flipped = publish(nights, night(nights, count // 2, rows))
    sweep(nights)
    p95 = quantiles(flips, n=20)[-1]
    note(
        f"{count} nights of {rows} rows: at most {most} parts attached, {attached(nights)} at the end; publish p95 "
        f"{p95 * 1000:.1f} ms; a backfill into a merged period copied {built * 1000:.0f} ms before its flip of "
        f"{flipped * 1000:.1f} ms"
    )
    assert nights.sql("select count(*), count(distinct batch_id) from results.notes") == [(count * rows, count)]
    found = reads(nights)
    note(f"{count} nights of {rows} rows, against a table: " + ", ".join(f"{k} {v:.2f}" for k, v in found.items()))
    if count < 400:
        return
    assert p95 <= 0.050
    assert built <= 1
    assert flipped <= 0.050
    assert found["copy"] <= 1.2
    assert found["aggregate"] <= 2.5
    assert found["count"] <= 3
    assert found["prepared"] <= 5
    assert found["more_ms"] <= 1.5

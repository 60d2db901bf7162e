"""What readers pay: the view among many attached batches beside a plain table with the same rows."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from statistics import median
from typing import Any, LiteralString

import psycopg

from bench.site import Site
from bench.stages import newest_batch

ATTACHED = 30
OTHER_ROWS = 10_000  # of each other batch: a reader of the shown one never touches them
SCANS = 7
POINTS = 2_000
SCAN: LiteralString = "select count(*), avg(pages), max(title) from {}"
POINT: LiteralString = "select title, topic, pages from {} where source_id = %s"

Connection = psycopg.Connection[tuple[Any, ...]]


def compare(site: Site, items: int) -> dict[str, float]:
    """Ratios of the view to a plain table: a scan, point reads prepared, and what unprepared ones take more in ms."""
    _attach_others(site)
    ids = [f"doc-{number:08d}" for number in random.Random(7).sample(range(1, items + 1), min(POINTS, items))]
    with psycopg.connect(site.admin_dsn, autocommit=True) as conn:
        scans = _interleaved(lambda table: _scan(conn, table), SCANS)
        prepared = _interleaved(lambda table: _points(conn, table, ids, prepare=True), 3)
        unprepared = _interleaved(lambda table: _points(conn, table, ids, prepare=False), 3)
    return {
        "attached_batches": ATTACHED,
        "scan_ratio": round(scans[0] / scans[1], 2),
        "prepared_point_ratio": round(prepared[0] / prepared[1], 2),
        "unprepared_point_more_ms": round((unprepared[0] - unprepared[1]) / len(ids) * 1000, 3),
        "scan_s": round(scans[0], 3),
        "prepared_point_us": round(prepared[0] / len(ids) * 1e6, 1),
    }


def _attach_others(site: Site) -> None:
    shown = newest_batch(site)
    with psycopg.connect(site.admin_dsn) as conn:
        for number in range(1, ATTACHED):
            other = shown + 1000 + number
            conn.execute("select nightmill.create_partition('rows_bench', %s)", (other,))
            conn.execute(
                psycopg.sql.SQL(
                    "insert into nightmill.{} select {}, ordinal, source_id, source_version, tenant, domain, "
                    "result_id, reused, model, prompt_version, answered_at, title, topic, pages "
                    "from nightmill.rows_bench where batch_id = {} and ordinal < {}"
                ).format(psycopg.sql.Identifier(f"rows_bench_{other}"), other, shown, OTHER_ROWS)
            )
            conn.execute("select nightmill.attach_partition('rows_bench', %s)", (other,))
        conn.execute("drop table if exists plain")
        conn.execute("create table plain as select * from results.bench")
        conn.execute("create index on plain (source_id)")
    with psycopg.connect(site.admin_dsn, autocommit=True) as conn:
        conn.execute("vacuum analyze plain")
        conn.execute("vacuum analyze nightmill.rows_bench")


def _interleaved(measure: Callable[[str], float], rounds: int) -> tuple[float, float]:
    """Median seconds of (view, plain table), measured in turns so that a busy moment meets both."""
    pairs = [(measure("results.bench"), measure("plain")) for _ in range(rounds)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


def _scan(conn: Connection, table: str) -> float:
    start = time.perf_counter()
    conn.execute(psycopg.sql.SQL(SCAN).format(psycopg.sql.SQL(table))).fetchone()  # type: ignore[arg-type]
    return time.perf_counter() - start


def _points(conn: Connection, table: str, ids: list[str], *, prepare: bool) -> float:
    query = psycopg.sql.SQL(POINT).format(psycopg.sql.SQL(table))  # type: ignore[arg-type]
    conn.execute(query, (ids[0],), prepare=prepare)
    start = time.perf_counter()
    for one in ids:
        conn.execute(query, (one,), prepare=prepare).fetchone()
    return time.perf_counter() - start

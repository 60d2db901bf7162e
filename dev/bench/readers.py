"""What readers pay: the view among many attached batches beside a plain table with the same rows."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from statistics import median
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from dev.bench.site import Site
from dev.bench.stages import newest_batch

ATTACHED = 30
OTHER_ROWS = 10_000  # of each other batch: a reader of the shown one never touches them
SCANS = 7
POINTS = 2_000
SCAN: LiteralString = "select count(*), avg(pages), max(title) from {}"
TABLES = {"view": "results.bench", "plain": "plain"}
POINT: LiteralString = "select title, topic, pages from {} where source_id = %s"

Connection = psycopg.Connection[tuple[Any, ...]]


def compare(site: Site, items: int) -> dict[str, float]:
    """Ratios of the view to a plain table: a scan, point reads prepared, and what unprepared ones take more in ms."""
    _attach_others(site)
    ids = [f"doc-{number:08d}" for number in random.Random(7).sample(range(1, items + 1), min(POINTS, items))]
    with psycopg.connect(site.admin_dsn, autocommit=True) as conn:
        scan = _in_turns(SCANS, lambda table, _: conn.execute(_on(SCAN, table)).fetchone(), min)
        prepared = _points(conn, ids, prepare=True)
        unprepared = _points(conn, ids, prepare=False)
    return {
        "attached_batches": ATTACHED,
        "scan_ratio": round(scan["view"] / scan["plain"], 2),
        "prepared_point_ratio": round(prepared["view"] / prepared["plain"], 2),
        "unprepared_point_more_ms": round((unprepared["view"] - unprepared["plain"]) * 1000, 3),
        "scan_s": round(scan["view"], 3),
        "prepared_point_us": round(prepared["view"] * 1e6, 1),
    }


def _attach_others(site: Site) -> None:
    shown = newest_batch(site)
    with psycopg.connect(site.admin_dsn) as conn:
        for number in range(1, ATTACHED):
            other = shown + 1000 + number
            conn.execute("select nightmill.create_partition('rows_bench', %s)", (other,))
            conn.execute(
                sql.SQL(
                    "insert into nightmill.{} (part_id, batch_id, ordinal, source_id, result_id, title, topic, pages) "
                    "select {}, {}, ordinal, source_id, result_id, title, topic, pages "
                    "from nightmill.rows_bench where part_id = {} and ordinal < {}"
                ).format(sql.Identifier(f"rows_{other}"), other, other, shown, OTHER_ROWS)
            )
            conn.execute("select nightmill.attach_partition('rows_bench', %s)", (other,))
            conn.execute("select nightmill.index_partition('rows_bench', %s)", (other,))
        conn.execute("drop table if exists plain")
        conn.execute("create table plain as select * from results.bench")
        conn.execute("create index on plain (source_id)")
    with psycopg.connect(site.admin_dsn, autocommit=True) as conn:
        conn.execute("vacuum analyze plain")
        conn.execute("vacuum analyze nightmill.rows_bench")


def _points(conn: Connection, ids: list[str], *, prepare: bool) -> dict[str, float]:
    return _in_turns(
        len(ids),
        lambda table, turn: conn.execute(_on(POINT, table), (ids[turn],), prepare=prepare).fetchone(),
        median,
    )


def _in_turns(
    turns: int, read: Callable[[str, int], object], summary: Callable[[list[float]], float]
) -> dict[str, float]:
    """Seconds of one read of the view and of the plain table, read in turns: a busy moment meets both."""
    took: dict[str, list[float]] = {name: [] for name in TABLES}
    for turn in range(turns):
        for name, table in TABLES.items():
            start = time.perf_counter()
            read(table, turn)
            took[name].append(time.perf_counter() - start)
    return {name: summary(seconds) for name, seconds in took.items()}


def _on(query: LiteralString, table: str) -> sql.Composed:
    return sql.SQL(query).format(sql.SQL(table))  # type: ignore[arg-type]

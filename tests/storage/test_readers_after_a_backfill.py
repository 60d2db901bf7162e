"""Right after a backfill of 400 nights, before maintenance: Postgres' own limit of locks suffices readers."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import IsolationLevel
from support.ledger import Ledger, apply, definition

from dev.stack import postgres
from dev.stack.postgres import Server
from nightmill.storage.migrate import init_db

NIGHTS, READERS = 400, 20
FIRST = datetime(2025, 1, 1, tzinfo=UTC)
_FILL = 'insert into nightmill.{} select (jsonb_populate_record(one, \'{{"part_id": {}, "batch_id": {}}}\')).* '
_FILL += "from nightmill.rows_notes as one where part_id = 1"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """One with Postgres' own limits; the other tests share one that has more."""
    settings = postgres.SETTINGS.replace("max_connections = 200", "max_connections = 100")
    monkeypatch.setattr(postgres, "SETTINGS", settings.replace("max_locks_per_transaction = 256", ""))
    home = Path(tempfile.mkdtemp(prefix="nightmill-test-"))
    made = postgres.start_server(home, durable=False)
    yield made
    made.stop()
    shutil.rmtree(home)


@pytest.fixture
def nights(server: Server) -> Ledger:
    """A view of 400 nights of two rows, each in a part of its own: one was published, the others look so."""
    server.create_database("nights")
    dsn = server.dsn("nights")
    init_db(dsn)
    job = definition(mode="by_interval")
    apply(dsn, job)
    logins = {}
    for role in ("writer", "reader"):
        server.create_login(f"nightmill_test_{role}")
        logins[role] = server.dsn("nights", f"nightmill_test_{role}")
    ledger = Ledger(dsn, logins["writer"], logins["reader"], job)
    ledger.sql("grant nightmill_writer to nightmill_test_writer; grant nightmill_reader to nightmill_test_reader")
    ledger.publish(ledger.validating(2, interval_start=FIRST, interval_end=FIRST + timedelta(days=1)))
    with ledger.admin(autocommit=True) as conn:
        conn.execute("set session_replication_role = replica")
        for number in range(2, NIGHTS + 1):
            _add(conn, number)
    return ledger


def _add(conn: psycopg.Connection[tuple[object, ...]], number: int) -> None:
    conn.execute("select nightmill.create_partition('rows_notes', %s)", (number,))
    conn.execute(_FILL.format(f"rows_{number}", number, number))  # type: ignore[call-overload]
    conn.execute("select nightmill.attach_partition('rows_notes', %s)", (number,))
    conn.execute(
        "insert into nightmill.publication_part select publish_seq, %(n)s, %(n)s, interval_start - %(n)s * '1 day'::"
        "interval, interval_end - %(n)s * '1 day'::interval, frozen_at, counts, gaps, shown_since "
        "from nightmill.publication_part where part_id = 1",
        {"n": number},
    )


@pytest.mark.slow
def test_twenty_readers_at_once_see_all_nights(nights: Ledger) -> None:
    assert nights.sql("show max_locks_per_transaction") == [("64",)]
    faults: list[BaseException] = []
    together = threading.Barrier(READERS)

    def read(number: int) -> None:
        try:
            with nights.reader() as conn:
                conn.isolation_level = IsolationLevel.REPEATABLE_READ if number % 2 else None
                for _ in range(3):
                    row = conn.execute("select count(*), count(distinct batch_id) from results.notes").fetchone()
                    assert row == (2 * NIGHTS, NIGHTS), row
                    together.wait(120)  # all of them hold their locks now
                    conn.commit()
        except BaseException as fault:
            faults.append(fault)
            together.abort()

    threads = [threading.Thread(target=read, args=(number,), daemon=True) for number in range(READERS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(120)
    assert not faults

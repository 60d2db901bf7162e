"""Publishing flips one pointer: its time does not grow with the batch."""

from __future__ import annotations

import time
from statistics import median, quantiles

import pytest
from support.figures import note, series
from support.ledger import Ledger

from nightmill.domain.states import BatchState
from nightmill.storage import batches, publications
from nightmill.storage.batches import Batch

ROUNDS = 40
LIMIT_S = 0.050
SIZES = [10_000, 100_000, pytest.param(1_000_000, marks=pytest.mark.slow)]


def publish_often(ledger: Ledger, batch: Batch) -> list[float]:
    """Seconds of each of many publications, commit included. In between the administrator puts the batch back, with
    the guards off."""
    took = []
    for _ in range(ROUNDS):
        with ledger.writer() as conn:
            now = batches.get(conn, batch.batch_id)
            conn.commit()
            start = time.perf_counter()
            publications.publish(conn, now, "tester", lambda: None)
            conn.commit()
            took.append(time.perf_counter() - start)
        with ledger.admin() as conn:
            conn.execute("set session_replication_role = replica")
            conn.execute(
                "update nightmill.batch set state = 'VALIDATING', ended_at = null where batch_id = %s",
                (batch.batch_id,),
            )
    return took


@pytest.mark.parametrize("items", SIZES)
def test_publishing_takes_at_most_fifty_milliseconds(ledger: Ledger, items: int) -> None:
    start = time.perf_counter()
    before = ledger.validating(100)
    ledger.publish(before)
    batch = ledger.validating(items)
    made = time.perf_counter() - start

    for _ in series():
        took = publish_often(ledger, batch)
        p95 = quantiles(took, n=20)[-1]
        note(
            f"publish at {items} outcome rows: median {median(took) * 1000:.1f} ms, p95 {p95 * 1000:.1f} ms, "
            f"most {max(took) * 1000:.1f} ms (set up in {made:.1f} s)"
        )
        if p95 <= LIMIT_S:
            break
    assert p95 <= LIMIT_S
    assert ledger.sql("select count(*), min(batch_id), max(batch_id) from results.notes") == [
        (items, batch.batch_id, batch.batch_id)
    ]
    assert batch.state is BatchState.VALIDATING

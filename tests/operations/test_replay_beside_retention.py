"""A batch that is replayed while retention is about to delete it: either the child has all of it, or it is refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from support.pipeline import Pipeline
from support.replays import take_over
from support.steps import batch_of, cancel

from nightmill.domain.errors import Terminal
from nightmill.domain.maintenance import Sweep
from nightmill.domain.states import BatchState
from nightmill.storage import replay
from nightmill.upkeep import maintenance


def in_turn(pipeline: Pipeline, parent: int, *calls: Callable[[], object]) -> list[object]:
    """What came of calls that all waited for the batch, each from before the next one began to wait."""
    came: dict[int, object] = {}
    threads = []

    def noted(number: int, call: Callable[[], object]) -> None:
        try:
            came[number] = call()
        except Terminal as fault:
            came[number] = fault

    with pipeline.env.ledger() as conn:
        replay.hold(conn, parent)
        for number, call in enumerate(calls, start=1):
            threads.append(threading.Thread(target=noted, args=(number, call), daemon=True))
            threads[-1].start()
            until = time.monotonic() + 120
            while pipeline.sql("select count(*) from pg_locks where locktype = 'advisory' and not granted") != [
                (number,)
            ]:
                assert time.monotonic() < until, came
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return [came[number] for number in sorted(came)]


@pytest.fixture
def cancelled(pipeline: Pipeline) -> int:
    """A cancelled batch past its time, with its manifest."""
    batch = pipeline.freeze()
    cancel(pipeline, batch.batch_id)
    pipeline.clock_offset += timedelta(days=100)
    return batch.batch_id


def retain(pipeline: Pipeline) -> object:
    return maintenance.run(pipeline.env, {}, pipeline.admin_dsn, Sweep.RETENTION, dry_run=False)


def test_a_batch_that_got_a_child_meanwhile_is_not_deleted(pipeline: Pipeline, cancelled: int) -> None:
    in_turn(pipeline, cancelled, lambda: take_over(pipeline, cancelled), lambda: retain(pipeline))
    assert batch_of(pipeline, 2).state is BatchState.PLANNING
    assert pipeline.sql("select count(*) from nightmill.item where batch_id = 2") == [(20,)]
    assert pipeline.sql("select retired_at from nightmill.batch where batch_id = 1") == [(None,)]


def test_a_batch_that_is_being_deleted_is_not_replayed(pipeline: Pipeline, cancelled: int) -> None:
    [_, refused] = in_turn(pipeline, cancelled, lambda: retain(pipeline), lambda: take_over(pipeline, cancelled))
    assert isinstance(refused, Terminal) and "removed by retention" in refused.cause
    assert pipeline.sql("select count(*) from nightmill.batch") == [(1,)]

"""Taking over a parent is set-based: seconds for a million items, whatever is sent again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import pytest
from support.figures import note
from support.ledger import Ledger

from nightmill.jobs.rules.dead_letters import DeadLetterFilter
from nightmill.operations import replay
from nightmill.services.environment import Environment
from nightmill.stages import plan
from nightmill.storage import batches
from nightmill.storage.payloads import PayloadStore

EVERY = 100  # one of so many items gave up
SECONDS_PER_MILLION = 300  # far above an idle machine's, and far below an item at a time


def with_dead_letters(ledger: Ledger, items: int) -> int:
    """A published batch of which one percent gave up; the guards are off meanwhile."""
    batch = ledger.validating(items)
    ledger.publish(batch)
    with ledger.admin() as conn:
        conn.execute("set session_replication_role = replica")
        conn.execute(
            "update nightmill.outcome set kind = 'dead_lettered', result_id = null, class = 'input', code = 'bad' "
            "where batch_id = %s and ordinal %% %s = 0",
            (batch.batch_id, EVERY),
        )
        conn.execute("delete from nightmill.rows_notes where ordinal %% %s = 0", (EVERY,))
        conn.execute(
            "insert into nightmill.dead_letter (batch_id, ordinal, key, class, code, message, attempts) "
            "select batch_id, ordinal, key, 'input', 'bad', '', 1 from nightmill.item where ordinal %% %s = 0",
            (EVERY,),
        )
    ledger.sql("analyze")
    return batch.batch_id


@pytest.mark.parametrize("items", [10_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_parent_is_taken_over_set_by_set(ledger: Ledger, items: int, tmp_path: Path) -> None:
    parent = with_dead_letters(ledger, items)
    env = Environment(ledger.writer_dsn, PayloadStore(f"file://{tmp_path}"), cast(Any, None))
    request = replay.ReplayRequest("nightmill_notes", "replay", True, parent, DeadLetterFilter(), False, None, None)
    began = time.perf_counter()
    child = replay.run(env, ledger.job, request).batch_id
    taken_over = time.perf_counter()
    plan.run(env, child)
    planned = time.perf_counter()
    note(f"replay of {items} items: taken over in {taken_over - began:.1f} s, planned in {planned - taken_over:.1f} s")
    assert planned - began < 10 + SECONDS_PER_MILLION * items / 1_000_000
    with ledger.writer() as conn:
        assert batches.bucket_counts(conn, child) == {"reused": items - items // EVERY, "unsettled": items // EVERY}
    assert ledger.sql("select sum(items)::bigint from nightmill.shard where batch_id = %s", child) == [
        (items // EVERY,)
    ]

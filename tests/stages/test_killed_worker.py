"""Workers killed with SIGKILL at each point where money or rows could get lost; another wake-up goes on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.pipeline import Pipeline
from support.steps import Worker, batch_of, counts, one_shard, paid_once, provider_batches, publish_unchecked

from nightmill.domain.states import BatchState

QUIET = timedelta(seconds=60)  # more than create_timeout_s + quiet_period_s of the job


@pytest.mark.parametrize(
    "point",
    ["between_intent_and_upload", "between_upload_and_create", "between_create_and_record", "in_mid_ingest"],
)
def test_a_worker_killed_while_it_drives_a_shard_is_succeeded_by_one_that_pays_nothing_twice(
    pipeline: Pipeline, point: str
) -> None:
    batch, shard = one_shard(pipeline)
    Worker(pipeline, "wake", shard, point).kill_at_point()
    before = counts(pipeline, batch)
    assert before.get("accepted", 0) == (3 if point == "in_mid_ingest" else 0)

    pipeline.clock_offset += QUIET
    pipeline.drive([shard])

    report = publish_unchecked(pipeline, batch)
    assert report.counts == {"accepted": 20}
    assert report.spent.requests == 20
    paid_once(pipeline, 20)
    states = [row[0] for row in provider_batches(pipeline)]
    assert states.count("COLLECTED") == 1
    assert len(pipeline.sql("select * from results.notes")) == 20
    if point == "between_create_and_record":
        assert provider_batches(pipeline) == [("COLLECTED", "every line is in the ledger", True)]
        assert len(pipeline.simulator.books()["batches"]) == 1


def test_a_freeze_killed_in_mid_copy_leaves_nothing_visible_and_starts_anew(pipeline: Pipeline) -> None:
    Worker(pipeline, "freeze", "run-1", "in_mid_copy").kill_at_point()
    [(batch_id, state)] = pipeline.sql("select batch_id, state from nightmill.batch")
    assert state == "CREATED"
    assert pipeline.sql("select * from nightmill.item") == []
    assert pipeline.sql("select * from nightmill.payload_segment") == []
    pipeline.sql("delete from documents where id > 'doc-15'")

    again = pipeline.freeze(first_try=False)

    assert (again.batch_id, again.incarnation, again.state, again.item_count) == (batch_id, 1, BatchState.PLANNING, 15)
    pipeline.drive(pipeline.plan(again))
    assert publish_unchecked(pipeline, batch_of(pipeline, batch_id)).counts == {"accepted": 15}
    paid_once(pipeline, 15)

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dev.practice_provider.batch_states import (
    EDGES,
    BatchRow,
    Execute,
    Finish,
    Move,
    Pace,
    Status,
    Wait,
    next_step,
)
from dev.practice_provider.faults import FaultPlan

BATCH = BatchRow(
    seq=1,
    id="batch_1",
    status="in_progress",
    endpoint="/v1/chat/completions",
    input_file_id="file-1",
    metadata=None,
    created_at=100.0,
    expires_at=1000.0,
    output_expires_s=None,
    in_progress_at=101.0,
    finalizing_at=None,
    completed_at=None,
    failed_at=None,
    expired_at=None,
    cancelling_at=None,
    cancelled_at=None,
    model="echo-1",
    validated=1,
    enqueued_tokens=0,
    total=80,
    done=0,
    succeeded=0,
    failed=0,
    input_tokens=0,
    output_tokens=0,
    output_bytes=0,
    error_bytes=0,
    output_file_id=None,
    error_file_id=None,
    problems=None,
)
PACE = Pace(batch_s=10.0, cancel_s=1.0)


def test_lines_are_due_evenly_over_the_time_in_progress() -> None:
    assert next_step(BATCH, 101.0, PACE, FaultPlan()) == Wait()
    assert next_step(BATCH, 105.0, PACE, FaultPlan()) == Execute(40)
    assert next_step(BATCH, 109.0, PACE, FaultPlan()) == Execute(80)
    assert next_step(replace(BATCH, done=80), 109.0, PACE, FaultPlan()) == Move(Status.FINALIZING)


def test_a_hold_stops_the_end_but_not_expiry() -> None:
    held = FaultPlan(hold=True, hold_after=10)
    assert next_step(BATCH, 109.0, PACE, held) == Execute(10)
    assert next_step(replace(BATCH, done=10), 900.0, PACE, held) == Wait()
    assert next_step(replace(BATCH, done=10), 1000.0, PACE, held) == Finish(Status.EXPIRED)


@given(
    status=st.sampled_from([status for status in Status if EDGES[status]]),
    now=st.floats(min_value=100, max_value=2000),
    done=st.integers(min_value=0, max_value=80),
    batch_s=st.floats(min_value=0, max_value=100),
    hold=st.booleans(),
)
def test_every_step_follows_an_edge_and_never_executes_more_than_there_is(
    status: Status, now: float, done: int, batch_s: float, hold: bool
) -> None:
    batch = replace(BATCH, status=status.value, done=done, cancelling_at=100.0)
    step = next_step(batch, now, Pace(batch_s, 0), FaultPlan(hold=hold))
    if isinstance(step, Move | Finish):
        assert step.to in EDGES[status]
    if isinstance(step, Execute):
        assert done < step.due <= batch.total

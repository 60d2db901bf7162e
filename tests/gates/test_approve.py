"""The gate approve: what is asked, what an answer is bound to, and what a retry, a clear and a time-out find."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from support.gated import APPROVE, approve, ask, checked, gate_that_says, settled, verdicts
from support.pipeline import Pipeline
from support.steps import batch_of, run_unchecked

from nightmill.domain.errors import Blocked, BrokenJobFolder, Terminal
from nightmill.domain.gates import GateName, Word
from nightmill.domain.maintenance import Sweep
from nightmill.domain.states import BatchState
from nightmill.gates import approve as gate
from nightmill.gates import compare, question_text
from nightmill.gates.port import Passed, Verdict, Waiting
from nightmill.jobs.rules.dead_letters import DeadLetterFilter
from nightmill.operations import replay
from nightmill.stages import publish
from nightmill.storage.batches import Batch
from nightmill.upkeep import maintenance

YES = gate.Answer(True, "anna", datetime(2026, 12, 1, tzinfo=UTC))
NO = gate.Answer(False, "anna", datetime(2026, 12, 1, tzinfo=UTC), "the dates are wrong")


@pytest.fixture
def batch(pipeline: Pipeline) -> Batch:
    """A batch of a job that asks a person, at its last gate."""
    pipeline.edit("job.yaml", "publish:", APPROVE)
    made = settled(pipeline)
    checked(pipeline, made)
    return made


def answer(pipeline: Pipeline, batch: Batch, given: gate.Answer) -> Verdict | None:
    return ask(pipeline, batch, gate.answered(given))


def verdict_ids(pipeline: Pipeline) -> list[tuple[int, str]]:
    return pipeline.sql("select verdict_id, verdict from nightmill.gate_verdict where gate = 'approve' order by 1")  # type: ignore[return-value]


def show(pipeline: Pipeline, batch: Batch) -> None:
    publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")


def test_a_batch_waits_blocked_and_an_approval_opens_it_by_whom_and_when(pipeline: Pipeline, batch: Batch) -> None:
    assert isinstance(approve(pipeline, batch), Waiting)
    waiting = batch_of(pipeline, batch.batch_id)
    assert (waiting.state, waiting.blocked_by) == (BatchState.BLOCKED, "approve")
    assert waiting.state_reason.startswith("waits for an approval, until 20")
    with pytest.raises(Blocked, match="is BLOCKED by approve: waits for an approval"):  # marked as success
        show(pipeline, batch)

    answer(pipeline, batch, YES)
    show(pipeline, batch)
    assert pipeline.sql("select published_by, approved_by from nightmill.publication") == [("tester", "anna")]
    [(details,)] = pipeline.sql("select details from nightmill.gate_verdict where decided_by = 'anna'")
    assert details["answered_at"] == "2026-12-01T00:00:00+00:00"


def test_a_rejection_ends_the_batch_with_its_reason_and_by_whom(pipeline: Pipeline, batch: Batch) -> None:
    approve(pipeline, batch)
    with pytest.raises(Terminal, match=r"REJECTED \(approve: rejected by anna: the dates are wrong\).*Trigger a"):
        answer(pipeline, batch, NO)
    assert verdicts(pipeline, batch)[GateName.APPROVE] is Word.REJECTED
    with pytest.raises(Terminal, match="is REJECTED"):  # the answer comes once more, or somebody clears the task
        answer(pipeline, batch, YES)
    with pytest.raises(Terminal, match="is REJECTED"):
        approve(pipeline, batch, clears=9)


def test_a_rejection_revokes_the_answers_of_the_batch_where_the_job_says_so(pipeline: Pipeline) -> None:
    shown = run_unchecked(pipeline).batch.batch_id
    pipeline.edit("job.yaml", "publish:", "approve: {revoke_rejected: true}\npublish:")
    pipeline.sql("update documents set version = '2', body = body || '.' where id <= 'doc-05'")
    batch = settled(pipeline, "run-2")  # five answers of its own, fifteen that readers see
    checked(pipeline, batch)
    waiting = approve(pipeline, batch)
    assert isinstance(waiting, Waiting)
    with pipeline.env.ledger() as conn:
        assert "its answers are not reused" in question_text.of(conn, batch, waiting, "page").body
    with pytest.raises(Terminal, match=r"the dates are wrong; its answers are not reused\).*that was not revoked"):
        answer(pipeline, batch, NO)
    assert pipeline.sql("select details ->> 'revoked' from nightmill.gate_verdict where verdict = 'rejected'") == [
        ("5",)
    ]
    with pytest.raises(Terminal, match="were revoked when anna rejected it"):
        replay.look(pipeline.env, pipeline.live, batch.batch_id, DeadLetterFilter())
    assert pipeline.sql("select distinct batch_id from results.notes") == [(shown,)]
    again = settled(pipeline, "run-3")
    assert batch_of(pipeline, again.batch_id).counts == {"reused": 15, "accepted": 5}


def test_a_rejection_revokes_nothing_where_the_job_does_not_say_so_or_nobody_answered(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", "approve: {on_timeout: reject, revoke_rejected: true}\npublish:")
    timed_out = settled(pipeline)
    checked(pipeline, timed_out)
    approve(pipeline, timed_out)
    pipeline.clock_offset += timedelta(hours=72)
    with pytest.raises(Terminal, match="rejected by the time-out"):
        approve(pipeline, timed_out)
    pipeline.edit("job.yaml", "revoke_rejected: true", "revoke_rejected: false")
    rejected = settled(pipeline, "run-2")
    checked(pipeline, rejected)
    approve(pipeline, rejected)
    with pytest.raises(Terminal, match="rejected by anna"):
        answer(pipeline, rejected, NO)
    assert batch_of(pipeline, settled(pipeline, "run-3").batch_id).counts == {"reused": 20}


def test_a_retry_asks_for_no_second_answer_and_a_clear_does(pipeline: Pipeline, batch: Batch) -> None:
    first = approve(pipeline, batch)
    pipeline.clock_offset += timedelta(hours=1)
    second = approve(pipeline, batch)
    assert isinstance(first, Waiting)
    assert isinstance(second, Waiting)
    assert first.details["until"] == second.details["until"]  # a retry goes on with what is left
    answer(pipeline, batch, YES)
    before = verdict_ids(pipeline)
    assert isinstance(approve(pipeline, batch), Passed)
    assert isinstance(answer(pipeline, batch, YES), Passed)
    assert verdict_ids(pipeline) == before

    cleared = approve(pipeline, batch, clears=9)
    assert isinstance(cleared, Waiting)
    assert cleared.details["until"] > first.details["until"]
    assert batch_of(pipeline, batch.batch_id).state is BatchState.BLOCKED


def test_an_approval_counts_only_for_the_verdicts_that_it_was_given_for(pipeline: Pipeline, batch: Batch) -> None:
    approve(pipeline, batch)
    answer(pipeline, batch, YES)
    ask(pipeline, batch, compare.GATE)  # cleared: computed anew
    with pytest.raises(Blocked, match=r"was given for other verdicts.*Clear approve and its downstream tasks"):
        show(pipeline, batch)
    assert isinstance(approve(pipeline, batch), Waiting)
    ask(pipeline, batch, compare.GATE)
    with pytest.raises(Blocked, match=r"that have changed since\. Remedy: Clear approve: the person is asked again"):
        answer(pipeline, batch, YES)
    assert batch_of(pipeline, batch.batch_id).blocked_by == "approve"
    assert isinstance(approve(pipeline, batch), Waiting)
    answer(pipeline, batch, YES)
    show(pipeline, batch)


def test_an_approval_is_bound_to_the_generation_and_to_what_readers_see(pipeline: Pipeline, batch: Batch) -> None:
    approve(pipeline, batch)
    answer(pipeline, batch, YES)
    pipeline.edit("job.yaml", APPROVE, "publish:")
    other = run_unchecked(pipeline, "run-2").batch
    pipeline.sql("update nightmill.batch set data_interval_end = now() + interval '1 day' where batch_id = %s", 1)
    pipeline.edit("job.yaml", "publish:", APPROVE)
    with pytest.raises(Blocked, match=r"beside another result than results\.notes shows now"):
        show(pipeline, batch)
    assert pipeline.sql("select batch_id from nightmill.published") == [(other.batch_id,)]

    pipeline.sql("update nightmill.batch set generation = 2 where batch_id = %s", batch.batch_id)
    with pytest.raises(Blocked, match="no recorded pass of completion, check_staging, approve in generation 2"):
        show(pipeline, batch)


def test_nobody_is_asked_while_an_earlier_gate_is_closed(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", APPROVE)
    batch = settled(pipeline)
    said = r"nobody was asked: check_staging has no recorded pass .*Remedy: Clear check_staging and its downstream"
    with pytest.raises(Blocked, match=said):
        approve(pipeline, batch)
    checked(pipeline, batch)
    assert isinstance(approve(pipeline, batch), Waiting)


def test_without_a_default_the_time_out_leaves_the_batch_blocked_and_clearing_asks_again(
    pipeline: Pipeline, batch: Batch
) -> None:
    waiting = approve(pipeline, batch)
    assert isinstance(waiting, Waiting)
    pipeline.clock_offset += timedelta(hours=24)
    with pytest.raises(Blocked, match=r"nobody answered until 20.* UTC\. Remedy: Clear approve"):
        approve(pipeline, batch)
    assert batch_of(pipeline, batch.batch_id).blocked_by == "approve"
    assert isinstance(approve(pipeline, batch, clears=9), Waiting)


@pytest.mark.parametrize("on_timeout", ["approve", "reject"])
def test_a_default_counts_as_an_answer_and_says_that_it_is_one(pipeline: Pipeline, on_timeout: str) -> None:
    pipeline.edit("job.yaml", "publish:", f"approve: {{on_timeout: {on_timeout}}}\npublish:")
    batch = settled(pipeline)
    checked(pipeline, batch)
    assert isinstance(approve(pipeline, batch), Waiting)
    pipeline.clock_offset += timedelta(hours=72)
    by = f"the time-out (approve.on_timeout: {on_timeout})"
    if on_timeout == "reject":
        with pytest.raises(Terminal, match=r"rejected by the time-out \(.*: nobody answered until"):
            approve(pipeline, batch)
    else:
        assert isinstance(approve(pipeline, batch), Passed)
        show(pipeline, batch)
    assert pipeline.sql("select decided_by from nightmill.gate_verdict where decided_by is not null") == [(by,)]


def test_an_answer_counts_also_where_job_yaml_has_lost_its_approve_since(pipeline: Pipeline, batch: Batch) -> None:
    approve(pipeline, batch)
    pipeline.edit("job.yaml", APPROVE, "publish:")
    with pytest.raises(Terminal, match="rejected by anna"):
        answer(pipeline, batch, NO)


def test_a_preview_asks_nobody_in_its_own_run(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", APPROVE)
    batch = settled(pipeline, publish="no")
    checked(pipeline, batch)
    assert approve(pipeline, batch) is None
    show(pipeline, batch)
    assert batch_of(pipeline, batch.batch_id).state is BatchState.STAGED


def test_a_batch_that_waits_for_an_answer_is_not_abandoned_before_its_time(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", "approve: {timeout_h: 240}\npublish:")
    batch = settled(pipeline)
    checked(pipeline, batch)
    approve(pipeline, batch)
    jobs = {pipeline.live.name: pipeline.live}
    for days, swept in ((16, 0), (2, 1)):
        pipeline.clock_offset += timedelta(days=days)
        done = maintenance.run(pipeline.env, jobs, pipeline.admin_dsn, Sweep.ABANDONED, dry_run=True)
        assert len(done) == swept, done


def test_the_question_tells_numbers_verdicts_and_cost_and_no_text_of_a_document(
    pipeline: Pipeline, batch: Batch
) -> None:
    ask(pipeline, batch, gate_that_says(Passed({"told": ["3 rows gone, 2 changed"]}, "hash")))
    waiting = approve(pipeline, batch)
    assert isinstance(waiting, Waiting)
    with pipeline.env.ledger() as conn:
        asked = question_text.of(conn, batch, waiting, "https://airflow/nightmill/batch?x")
    assert asked.subject == f"Show batch {batch.batch_id} of notes in results.notes?"
    for words in (
        "readers of results.notes see no rows, as before",
        "20 planned; 20 accepted",
        "**Gaps:** none",
        "for 20 requests",
        "completion passed, check_staging passed, compare passed",
        "- 3 rows gone, 2 changed",
        "the task fails, and clearing it asks again",
        "(https://airflow/nightmill/batch?x)",
    ):
        assert words in asked.body
    assert "Text number" not in asked.body


def test_approve_with_nothing_behind_it_is_refused_for_it_would_ask_nobody(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", "approve:\npublish:")
    with pytest.raises(BrokenJobFolder, match=r"job.yaml:\d+: approve: .*write approve: \{\}"):
        _ = pipeline.live.job

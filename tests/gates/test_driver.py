"""The driver: what each verdict makes of a batch, whichever gate says it."""

from __future__ import annotations

import pytest
from support.gated import ask, checked, gate_that_says, settled, verdicts
from support.pipeline import Pipeline
from support.steps import batch_of, cancel, run_unchecked

from nightmill.domain.errors import Blocked, NightmillError, StaleWriter, Terminal
from nightmill.domain.gates import GATES, GateName, Word
from nightmill.domain.states import BatchState
from nightmill.gates import registry
from nightmill.gates.port import Gate, Look, NotConfigured, Passed, Refused, Rejected, Verdict, Waiting
from nightmill.stages import publish

REFUSED = Refused("2 of 3 tenants are worse", "Look at it; then clear compare.", {"n": 2}, "hash", ("select 1",) * 2)


def test_the_gates_are_those_that_the_ledger_knows_in_the_order_of_a_run(pipeline: Pipeline) -> None:
    assert [one.name for one in registry.GATES] == list(GATES)
    known = pipeline.sql("select pg_get_constraintdef(oid) from pg_constraint where conname = 'gate_known'")[0][0]
    words = pipeline.sql("select pg_get_constraintdef(oid) from pg_constraint where conname = 'gate_verdict_known'")
    assert all(f"'{one}'" in known for one in GATES)
    assert all(f"'{one}'" in words[0][0] for one in Word)


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (Passed({}, "hash"), BatchState.VALIDATING),
        (Passed({}, "hash", by="anna"), BatchState.VALIDATING),
        (NotConfigured(), BatchState.VALIDATING),
        (Waiting("an answer", {}), BatchState.BLOCKED),
        (REFUSED, BatchState.BLOCKED),
        (Refused("too few", "Run again.", {}, "hash", ends=BatchState.PARTIAL_FAILED), BatchState.PARTIAL_FAILED),
        (Rejected("anna", "the dates are wrong", {}), BatchState.REJECTED),
    ],
)
def test_a_verdict_is_recorded_with_what_it_makes_of_the_batch(
    pipeline: Pipeline, verdict: Verdict, state: BatchState
) -> None:
    batch = settled(pipeline)
    raises = isinstance(verdict, Refused | Rejected)
    try:
        assert ask(pipeline, batch, gate_that_says(verdict)) is verdict
        assert not raises
    except NightmillError as fault:
        assert raises, fault
        assert isinstance(fault, Blocked) == (state is BatchState.BLOCKED)
    now = batch_of(pipeline, batch.batch_id)
    assert now.state is state
    assert now.blocked_by == ("compare" if state is BatchState.BLOCKED else None)
    assert verdicts(pipeline, batch)[GateName.COMPARE] is verdict.word
    [(by,)] = pipeline.sql("select decided_by from nightmill.gate_verdict where gate = 'compare'")
    assert by == ("anna" if verdict.word is Word.REJECTED or getattr(verdict, "by", None) else None)


def test_a_refusal_says_why_what_to_look_at_and_what_to_do_and_clearing_the_task_goes_on(pipeline: Pipeline) -> None:
    batch = settled(pipeline)
    with pytest.raises(Blocked) as refused:
        ask(pipeline, batch, gate_that_says(REFUSED))
    assert refused.value.cause.splitlines() == [
        f"Batch {batch.batch_id}: 2 of 3 tenants are worse.",
        "To look, as nightmill_owner: select 1;",
    ]
    assert refused.value.remedy == REFUSED.remedy
    with pytest.raises(Blocked, match=r"BLOCKED by compare: 2 of 3 tenants are worse\. Remedy: Clear compare"):
        publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
    assert ask(pipeline, batch, gate_that_says(Passed({}, "hash"))) is not None
    assert batch_of(pipeline, batch.batch_id).state is BatchState.VALIDATING


def test_a_batch_that_another_gate_has_blocked_stays_with_that_one(pipeline: Pipeline) -> None:
    batch = settled(pipeline)
    for name in (GateName.CHECK_STAGING, GateName.COMPARE):
        with pytest.raises(Blocked):
            ask(pipeline, batch, gate_that_says(REFUSED, name))
        assert batch_of(pipeline, batch.batch_id).blocked_by == "check_staging"
    assert verdicts(pipeline, batch)[GateName.COMPARE] is Word.REFUSED


def test_a_rejection_ends_the_batch_and_every_later_task_says_who_and_why(pipeline: Pipeline) -> None:
    batch = settled(pipeline)
    said = r"is REJECTED \(compare: rejected by anna: the dates are wrong\): nothing was published"
    with pytest.raises(Terminal, match=said):
        ask(pipeline, batch, gate_that_says(Rejected("anna", "the dates are wrong", {})))
    for _ in range(2):
        with pytest.raises(Terminal, match=said):
            ask(pipeline, batch, gate_that_says(Passed({}, "hash")))
    with pytest.raises(Terminal, match=said):
        publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")


def test_a_gate_is_not_asked_about_a_batch_at_rest_nor_where_the_job_does_not_have_it(pipeline: Pipeline) -> None:
    def never(_look: Look) -> Verdict:
        raise AssertionError("it was asked")

    shown = run_unchecked(pipeline).batch
    assert ask(pipeline, shown, Gate(GateName.COMPARE, lambda _live: True, never)) is None
    batch = settled(pipeline, "run-2")
    assert ask(pipeline, batch, Gate(GateName.COMPARE, lambda _live: False, never)) == NotConfigured()
    preview = settled(pipeline, "run-3", publish="no")
    assert ask(pipeline, preview, Gate(GateName.COMPARE, lambda _live: True, never, for_previews=False)) is None
    assert GateName.COMPARE not in verdicts(pipeline, preview)


def test_a_verdict_of_a_gate_that_looked_while_the_batch_was_cancelled_is_not_kept(pipeline: Pipeline) -> None:
    batch = settled(pipeline)

    def slow(_look: Look) -> Verdict:
        cancel(pipeline, batch.batch_id)
        return Passed({}, "hash")

    with pytest.raises(StaleWriter):
        ask(pipeline, batch, Gate(GateName.COMPARE, lambda _live: True, slow))
    assert GateName.COMPARE not in verdicts(pipeline, batch)


def test_publish_wants_the_gates_that_the_job_has_now_and_compare_to_have_looked_at_what_is_shown_now(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_unchecked(pipeline).batch
    batch = settled(pipeline, "run-2")
    checked(pipeline, batch)  # compare: not configured
    comparing = Gate(GateName.COMPARE, lambda _live: True, lambda _look: Passed({"baseline": None}, "hash"))
    monkeypatch.setattr(registry, "GATES", tuple(comparing if one.name == "compare" else one for one in registry.GATES))
    with pytest.raises(Blocked, match=r"no recorded pass of compare .*Remedy: Clear compare and its downstream"):
        publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")  # it was configured since

    ask(pipeline, batch, comparing)
    with pytest.raises(Blocked, match=rf"beside no batch, and results.notes shows batch {first.batch_id} now.*compare"):
        publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
    assert batch_of(pipeline, batch.batch_id).state is BatchState.VALIDATING

    ask(pipeline, batch, gate_that_says(Passed({"baseline": first.batch_id}, "hash")))
    shown = publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
    assert shown is not None
    assert shown.batch_id == batch.batch_id

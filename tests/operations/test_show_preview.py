"""A preview that is published later: who may be, what stays as it was, and what a second try finds."""

from __future__ import annotations

import pytest
from support.gated import checked, settled
from support.pipeline import Pipeline
from support.steps import batch_of, cancel, run_unchecked

from nightmill.domain.errors import Blocked, Terminal
from nightmill.domain.states import BatchState
from nightmill.operations import rollback, show_preview
from nightmill.operations.show_preview import Wish
from nightmill.stages import publish, report
from nightmill.storage import batches
from nightmill.storage.batches import Batch

SHOWN = "select distinct batch_id from results.notes"


def preview(pipeline: Pipeline, run_id: str = "run-1", **changes: object) -> Batch:
    asked = {"by_hand": True, "publish": "no"} | changes
    return run_unchecked(pipeline, run_id, **asked).batch


def take_up(pipeline: Pipeline, batch: Batch, run_id: str = "manual__1", *, narrowed: bool = False) -> Batch:
    return show_preview.run(pipeline.env, Wish(batch.batch_id, run_id, "anna", narrowed, "looks good"))


def test_a_preview_is_shown_after_its_gates_and_nothing_is_paid_or_frozen_again(pipeline: Pipeline) -> None:
    staged = preview(pipeline)
    executed = pipeline.simulator.books(summary=True)["executed"]
    taken = take_up(pipeline, staged)
    assert (taken.state, taken.generation, taken.is_preview) == (BatchState.VALIDATING, staged.generation, False)
    assert taken.state_reason == "anna publishes the preview: looks good"
    checked(pipeline, taken)
    shown = publish.run(pipeline.env, pipeline.live, staged.batch_id, "anna")
    assert shown is not None
    assert report.run(pipeline.env, staged.batch_id).batch.state is BatchState.PUBLISHED
    assert pipeline.sql(SHOWN) == [(staged.batch_id,)]
    assert pipeline.simulator.books(summary=True)["executed"] == executed


def test_a_preview_with_less_than_the_job_declares_is_shown_only_when_somebody_confirms_it(pipeline: Pipeline) -> None:
    staged = preview(pipeline, params={"limit": 3})
    said = r"has a limit of 3 rows: results.notes would show these rows and no others.*confirm_narrowed in the form"
    with pytest.raises(Terminal, match=said):
        take_up(pipeline, staged)
    with pytest.raises(Terminal, match=said):
        show_preview.look(pipeline.env, staged.batch_id, confirm_narrowed=False)
    assert batch_of(pipeline, staged.batch_id).state is BatchState.STAGED
    assert show_preview.look(pipeline.env, staged.batch_id, confirm_narrowed=True).batch_id == staged.batch_id
    assert take_up(pipeline, staged, narrowed=True).state is BatchState.VALIDATING


def test_what_is_no_preview_is_refused_with_what_to_do(pipeline: Pipeline) -> None:
    with pytest.raises(Terminal, match=r"is VALIDATING .*not a preview\. Remedy: Wait for its own run"):
        take_up(pipeline, settled(pipeline))
    shown = run_unchecked(pipeline, "run-2").batch
    with pytest.raises(Terminal, match=r"is PUBLISHED .*Remedy: Trigger a run with the same values"):
        take_up(pipeline, shown)
    cancelled = preview(pipeline, "run-3")
    cancel(pipeline, cancelled.batch_id)
    with pytest.raises(Terminal, match=r"is CANCELLED .*not a preview"):
        take_up(pipeline, cancelled)


def test_the_task_that_took_it_up_gets_it_again_and_another_run_does_not(pipeline: Pipeline) -> None:
    staged = preview(pipeline)
    take_up(pipeline, staged)
    steps = pipeline.sql("select count(*) from nightmill.transition")
    assert take_up(pipeline, staged).state is BatchState.VALIDATING  # a retry, or somebody cleared it
    with pytest.raises(Terminal, match=r"run manual__1 of nightmill_publish has taken it up.*clear the task"):
        take_up(pipeline, staged, "manual__2")
    assert pipeline.sql("select count(*) from nightmill.transition") == steps
    cancel(pipeline, staged.batch_id)
    with pytest.raises(Terminal, match="is CANCELLED"):
        take_up(pipeline, staged)


@pytest.mark.parametrize("blocked", [False, True])
def test_giving_up_makes_it_a_preview_again_that_another_run_can_show(pipeline: Pipeline, blocked: bool) -> None:
    staged = preview(pipeline)
    taken = take_up(pipeline, staged)
    if blocked:
        with pipeline.env.ledger() as conn:
            batches.block(conn, taken, "compare", "worse")
    given_up = show_preview.give_up(pipeline.env, "manual__1")
    assert given_up is not None
    assert (given_up.state, given_up.is_preview) == (BatchState.STAGED, True)
    assert show_preview.give_up(pipeline.env, "manual__1") is None
    assert take_up(pipeline, staged, "manual__2").state is BatchState.VALIDATING


def test_a_preview_of_a_view_that_a_rollback_holds_is_refused_before_anybody_is_asked(pipeline: Pipeline) -> None:
    for run_id in ("run-1", "run-2"):
        run_unchecked(pipeline, run_id)
    staged = preview(pipeline, "run-3")
    wish = rollback.Wish("notes", reason="bad dates")
    rollback.run(pipeline.env, wish, rollback.look(pipeline.env, wish), "anna")
    with pytest.raises(Blocked, match=r"is held: anna rolled back batch 2 .*nightmill release notes"):
        take_up(pipeline, staged)
    assert batch_of(pipeline, staged.batch_id).state is BatchState.STAGED

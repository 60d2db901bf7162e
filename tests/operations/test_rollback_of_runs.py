"""After a rollback: what would replace what was taken back stops before it pays, until a person releases it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.rolled_back import two_versions
from support.steps import batch_of, publish_unchecked, run_unchecked

from nightmill.domain.errors import Blocked, ConfigError, Terminal
from nightmill.domain.states import BatchState
from nightmill.jobs.rules.dead_letters import DeadLetterFilter
from nightmill.operations import replay, rollback
from nightmill.operations.rollback import Done, Wish
from nightmill.stages import preflight, publish

NIGHT = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def roll_back(pipeline: Pipeline, request: str | None = None, **wish: Any) -> Done:
    asked = Wish("notes", reason="bad prompt", **wish)
    return rollback.run(pipeline.env, asked, rollback.look(pipeline.env, asked), "ann", request)


def calls(pipeline: Pipeline) -> int:
    """How often the provider was paid so far."""
    return int(pipeline.simulator.books()["executed"])


def shown(pipeline: Pipeline) -> list[int]:
    return [one for (one,) in pipeline.sql("select distinct batch_id from results.notes order by 1")]


def test_a_run_after_a_rollback_pays_nothing_and_publishes_nothing_until_it_is_released(pipeline: Pipeline) -> None:
    good, bad = two_versions(pipeline)
    paid = calls(pipeline)
    roll_back(pipeline)
    assert shown(pipeline) == [good]
    pipeline.edit("prompt.md", "Describe", "Tell")
    held = pipeline.freeze("run-3")
    for _ in range(2):  # clearing preflight asks again
        with pytest.raises(
            Blocked, match=rf"is held: ann rolled back batch {bad} .*bad prompt.*Nothing is paid"
        ) as said:
            pipeline.plan(held)
    assert "`python -m nightmill release notes`; then clear preflight" in said.value.remedy
    found = batch_of(pipeline, held.batch_id)
    assert (found.state, found.blocked_by, calls(pipeline)) == (BatchState.BLOCKED, "preflight", paid)
    [lifted] = rollback.release(pipeline.env, "notes", None, "bob")
    assert lifted.taken_back == [bad]
    pipeline.drive([one.shard_id for one in preflight.run(pipeline.env, pipeline.live, held.batch_id)])
    publish_unchecked(pipeline, held)
    assert shown(pipeline) == [held.batch_id]
    assert calls(pipeline) == paid + 20
    with pytest.raises(ConfigError, match=r"Nothing of results\.notes is held"):
        rollback.release(pipeline.env, "notes", None, "bob")


def test_a_run_that_paid_before_the_rollback_is_refused_by_publish(pipeline: Pipeline) -> None:
    good, _ = two_versions(pipeline)
    pipeline.edit("prompt.md", "Describe", "Tell")
    batch = pipeline.freeze("run-3")
    pipeline.drive(pipeline.plan(batch))
    roll_back(pipeline)
    with pytest.raises(Blocked, match="is held"):
        publish_unchecked(pipeline, batch)
    assert shown(pipeline) == [good]
    assert batch_of(pipeline, batch.batch_id).state is BatchState.VALIDATING
    rollback.release(pipeline.env, "notes", None, "bob")
    publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
    assert shown(pipeline) == [batch.batch_id]


def test_a_dry_run_and_a_preview_replace_nothing_and_go_on(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    two_versions(pipeline)
    roll_back(pipeline)
    dry = pipeline.freeze("run-3", dry_run=True)
    assert pipeline.plan(dry) == []
    assert batch_of(pipeline, dry.batch_id).state is BatchState.ESTIMATED
    assert "the view results.notes is held" in caplog.text
    preview = pipeline.freeze("run-4", publish="no")
    pipeline.drive(pipeline.plan(preview))
    publish_unchecked(pipeline, preview)
    assert batch_of(pipeline, preview.batch_id).state is BatchState.STAGED


def test_publish_cleared_on_what_was_rolled_back_is_refused_with_the_way_to_show_it_again(pipeline: Pipeline) -> None:
    good, bad = two_versions(pipeline)
    roll_back(pipeline)
    said = (
        rf"Batch {bad} was published before, and ann rolled back batch {bad} .*; results\.notes shows batch {good} now"
    )
    with pytest.raises(Terminal, match=said) as refused:
        publish.run(pipeline.env, pipeline.live, bad, "tester")
    assert "python -m nightmill rollback notes --to SEQ" in refused.value.remedy
    assert publish.run(pipeline.env, pipeline.live, good, "tester") is not None  # it is shown: nothing to do


def test_without_revoking_the_released_run_reuses_and_after_revoking_it_asks_again(pipeline: Pipeline) -> None:
    _, bad = two_versions(pipeline)
    paid = calls(pipeline)
    roll_back(pipeline)
    rollback.release(pipeline.env, "notes", None, "bob")
    assert run_unchecked(pipeline, "run-3").batch.counts == {"reused": 20}
    assert calls(pipeline) == paid
    done = roll_back(pipeline, revoke=True)
    assert done.revoked == 20
    assert done.hold.taken_back != [bad]
    rollback.release(pipeline.env, "notes", None, "bob")
    assert run_unchecked(pipeline, "run-4").batch.counts == {"accepted": 20}
    assert calls(pipeline) == paid + 20


def test_a_batch_whose_answers_were_revoked_is_not_replayed(pipeline: Pipeline) -> None:
    _, bad = two_versions(pipeline)
    roll_back(pipeline, revoke=True)
    with pytest.raises(Terminal, match=f"answers of batch {bad} were revoked: ann rolled back") as refused:
        replay.look(pipeline.env, pipeline.live, bad, DeadLetterFilter())
    assert refused.value.remedy == "Trigger a new run, which asks for them again."


def test_answers_that_stay_shown_are_not_revoked(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    pipeline.sql("update documents set version = '2', body = body || '.' where id <= 'doc-05'")
    run_unchecked(pipeline, "run-2")  # five answers of its own, fifteen of the first
    assert roll_back(pipeline, revoke=True).revoked == 5


def test_what_a_killed_try_left_is_made_up_for_and_rolls_back_once(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, _ = two_versions(pipeline)
    with monkeypatch.context() as patched:
        patched.setattr(rollback, "_revoke", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            roll_back(pipeline, "run", revoke=True)
    assert shown(pipeline) == [good]  # committed; its answers are not revoked yet
    done = rollback.done_before(pipeline.env, "run")
    assert done is not None
    assert (done.revoked, done.hold.revoke) == (20, True)
    assert rollback.done_before(pipeline.env, "another") is None
    assert pipeline.sql("select count(*) from nightmill.publication where kind = 'rollback'") == [(1,)]


def test_release_revokes_first_what_a_killed_rollback_did_not(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_versions(pipeline)
    with monkeypatch.context() as patched:
        patched.setattr(rollback, "_revoke", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            roll_back(pipeline, revoke=True)
    rollback.release(pipeline.env, "notes", None, "bob")
    assert pipeline.sql("select revoked, released_by from nightmill.hold") == [(20, "bob")]
    assert pipeline.sql("select count(*) from nightmill.result where revoked_at is not null") == [(20,)]


def test_with_an_interval_the_nights_of_other_intervals_go_on(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish: {view: notes}", "publish: {view: notes, mode: by_interval}")
    pipeline.apply()

    def night(number: int, run_id: str) -> int:
        start = NIGHT + number * DAY
        made = run_unchecked(pipeline, run_id, data_interval_start=start, data_interval_end=start + DAY)
        return made.batch.batch_id

    first, second = night(0, "run-1"), night(1, "run-2")
    pipeline.edit("prompt.md", "Summarise", "Describe")
    again = night(0, "run-3")
    done = roll_back(pipeline, interval="2026-01-01")
    assert (done.hold.taken_back, done.intervals) == ([again], [(NIGHT, NIGHT + DAY)])
    assert shown(pipeline) == [first, second]
    third = night(2, "run-4")
    paid = calls(pipeline)
    with pytest.raises(Blocked, match=r"The interval 2026-01-01T00:00:00\+00:00 of results\.notes is held"):
        night(0, "run-5")
    assert (shown(pipeline), calls(pipeline)) == ([first, second, third], paid)
    with pytest.raises(ConfigError, match="is not held as a whole, but 1 interval of it") as asked:
        rollback.release(pipeline.env, "notes", None, "bob")
    assert "release notes --interval 2026-01-01T00:00:00+00:00" in asked.value.remedy
    rollback.release(pipeline.env, "notes", "2026-01-01", "bob")
    [(batch_id,)] = pipeline.sql("select max(batch_id) from nightmill.batch")
    preflight.run(pipeline.env, pipeline.live, batch_id)
    assert batch_of(pipeline, batch_id).state is BatchState.QUEUED

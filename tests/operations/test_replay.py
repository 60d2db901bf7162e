"""Replay: a child batch sends chosen dead letters again and carries everything else of its parent."""

from __future__ import annotations

from typing import Any

import pytest
from support.pipeline import Pipeline
from support.replays import BAD_INPUT, FILTERED, replayed, take_over, with_dead_letters
from support.steps import batch_of, cancel, counts, paid_once, publish_unchecked, run_unchecked, set_faults

from nightmill.domain.errors import Blocked, Terminal
from nightmill.domain.failures import FailureClass
from nightmill.domain.keys import KeyMaker
from nightmill.domain.states import BatchState
from nightmill.jobs.rules.dead_letters import DeadLetterFilter
from nightmill.operations import replay


def shown(pipeline: Pipeline) -> dict[str, int]:
    """What readers see: document -> result."""
    return dict(pipeline.sql("select source_id, result_id from results.notes"))


def test_after_the_fault_is_gone_the_dead_letters_are_paid_for_once_and_all_rows_of_the_parent_stay(
    pipeline: Pipeline,
) -> None:
    parent = with_dead_letters(pipeline, BAD_INPUT)
    before, executed = shown(pipeline), pipeline.simulator.books(summary=True)["executed"]
    pipeline.sql("delete from documents")  # the source is not read again
    assert len(before) == 16
    made = replayed(pipeline, parent.batch_id)
    assert made.counts == {"accepted": 4, "reused": 16}
    paid_once(pipeline, executed + 4)
    after = shown(pipeline)
    assert len(after) == 20
    assert before.items() <= after.items()
    assert made.shown is not None
    assert (made.shown.batch_id, made.shown.gaps) == (made.batch.batch_id, 0)
    [(parent_id, payload_id, content)] = pipeline.sql(
        "select child.parent_batch_id, child.payload_batch_id, child.content_hash = parent.content_hash "
        "from nightmill.batch as child join nightmill.batch as parent on parent.batch_id = child.parent_batch_id"
    )
    assert (parent_id, payload_id, content) == (parent.batch_id, parent.batch_id, True)


def test_what_was_not_chosen_stays_a_dead_letter_with_its_origin_and_its_time(pipeline: Pipeline) -> None:
    parent = with_dead_letters(pipeline, BAD_INPUT, FILTERED)
    made = replayed(pipeline, parent.batch_id, classes=[FailureClass.INPUT], tenants=["acme"])
    assert made.counts == {"accepted": 2, "dead_lettered": 4, "reused": 14}
    assert sorted(made.gaps) == [("dead_lettered/input/bad", 2), ("dead_lettered/policy/content_filter", 2)]
    copies = pipeline.sql(
        "select copy.origin_batch_id, copy.created_at = first.created_at, copy.message = first.message, copy.attempts "
        "from nightmill.dead_letter as copy join nightmill.dead_letter as first using (ordinal) "
        "where copy.batch_id = %s and first.batch_id = %s",
        made.batch.batch_id,
        parent.batch_id,
    )
    assert copies == [(parent.batch_id, True, True, 1)] * 4


def test_each_condition_chooses(pipeline: Pipeline) -> None:
    parent = with_dead_letters(pipeline, BAD_INPUT, FILTERED)

    def look(**choice: Any) -> Any:
        return replay.look(pipeline.env, pipeline.live, None, DeadLetterFilter(**choice)).chosen.dead_letters

    assert look() == {("input", "bad"): 4, ("policy", "content_filter"): 2}
    assert look(codes=["content_filter"]) == {("policy", "content_filter"): 2}
    assert look(ids=["doc-05"]) == {("input", "bad"): 1}
    assert look(since=parent.frozen_at) == look()
    with pytest.raises(Terminal, match=r"no dead letter or item in review that matches.*dead-letters --batch"):
        look(tenants=["nobody"])
    assert pipeline.sql("select count(*) from nightmill.batch") == [(1,)]


def test_an_edited_prompt_asks_the_chosen_under_a_new_key_and_keeps_the_answers_of_the_old_one(
    pipeline: Pipeline,
) -> None:
    parent = with_dead_letters(pipeline, BAD_INPUT)
    before, executed = shown(pipeline), pipeline.simulator.books(summary=True)["executed"]
    old = pipeline.live.versions
    pipeline.edit("prompt.md", "Summarise this document.", "Describe this document in a few plain words.")
    made = replayed(pipeline, parent.batch_id)
    assert made.counts == {"accepted": 4, "reused": 16}
    paid_once(pipeline, executed + 4)
    assert before.items() <= shown(pipeline).items()
    new = pipeline.live.versions
    assert old != new
    items = pipeline.sql(
        "select child.key, child.tenant, child.source_id, child.source_version, kind, child.tokens - parent.tokens "
        "from nightmill.item as child join nightmill.item as parent using (ordinal) "
        "join nightmill.outcome on outcome.batch_id = child.batch_id and outcome.ordinal = child.ordinal "
        "where child.batch_id = %s and parent.batch_id = %s",
        made.batch.batch_id,
        parent.batch_id,
    )
    for key, tenant, source_id, version, kind, longer in items:
        versions = new if kind == "accepted" else old
        assert key == KeyMaker(versions).key(tenant, source_id, version)
        assert (longer > 0) == (kind == "accepted")
    prompts = pipeline.sql("select prompt_version, count(*) from results.notes group by 1 order by 2")
    assert prompts == [(new.prompt_version, 4), (old.prompt_version, 16)]
    # The next run of the job asks for the rest under the new prompt, and reuses what the replay paid for.
    assert run_unchecked(pipeline, "run-2").counts == {"accepted": 16, "reused": 4}


def test_answers_that_break_todays_rules_are_asked_again(pipeline: Pipeline) -> None:
    parent = with_dead_letters(pipeline, BAD_INPUT)
    pipeline.edit("output.py", "ConfigDict\n", "ConfigDict, field_validator\n")
    rule = '\n    @field_validator("title")\n    @classmethod\n    def check(cls, value: str) -> str:\n'
    rule += '        if value == {banned!r}:\n            raise ValueError("no")\n        return value\n'
    [(title, rows)] = pipeline.sql("select title, count(*) from results.notes group by 1 order by 2, 1 limit 1")
    assert rows < 16
    pipeline.edit("output.py", "pages: int\n", "pages: int\n" + rule.format(banned=title))
    child = take_over(pipeline, parent.batch_id)
    assert counts(pipeline, child) == {"reused": 16 - rows, "unsettled": 4 + rows}


def test_a_batch_has_one_child_and_its_child_can_be_replayed(pipeline: Pipeline) -> None:
    parent = with_dead_letters(pipeline, BAD_INPUT, FILTERED)
    executed = pipeline.simulator.books(summary=True)["executed"]
    first = replayed(pipeline, parent.batch_id, classes=["input"]).batch
    with pytest.raises(Terminal, match=rf"replayed already: as batch {first.batch_id}, which is PUBLISHED"):
        take_over(pipeline, parent.batch_id, "replay-2")
    pipeline.edit("prompt.md", "Summarise", "Describe")
    second = replayed(pipeline, first.batch_id, "replay-2")
    assert second.counts == {"accepted": 2, "reused": 18}
    assert len(shown(pipeline)) == 20
    paid_once(pipeline, executed + 6)
    assert batch_of(pipeline, second.batch.batch_id).payload_batch_id == parent.batch_id


def test_clearing_the_first_task_returns_the_child(pipeline: Pipeline) -> None:
    parent = with_dead_letters(pipeline, BAD_INPUT)
    child = take_over(pipeline, parent.batch_id)
    assert take_over(pipeline, parent.batch_id, first_try=False).batch_id == child.batch_id


def test_a_retry_of_a_take_over_that_failed_goes_on_with_the_same_batch(pipeline: Pipeline) -> None:
    parent = with_dead_letters(pipeline, BAD_INPUT)
    pipeline.sql("revoke all on nightmill.payload_segment from nightmill_writer")
    pipeline.edit("prompt.md", "Summarise", "Describe")  # sizes are measured from the payload
    with pytest.raises(Exception, match="permission denied"):
        take_over(pipeline, parent.batch_id)
    pipeline.sql("grant select, insert on nightmill.payload_segment to nightmill_writer")
    child = take_over(pipeline, parent.batch_id, first_try=False)
    assert counts(pipeline, child) == {"reused": 16, "unsettled": 4}
    assert pipeline.sql("select count(*) from nightmill.batch") == [(2,)]


def test_a_child_that_never_got_its_manifest_makes_room_for_another(pipeline: Pipeline) -> None:
    parent = with_dead_letters(pipeline, BAD_INPUT)
    pipeline.edit("prompt.md", "Summarise", "Describe")  # sizes are measured from the payload
    stored = pipeline.store.rename(pipeline.store.with_name("away"))
    with pytest.raises(Terminal, match="is gone"):
        take_over(pipeline, parent.batch_id)
    [(state, reason)] = pipeline.sql("select state, state_reason from nightmill.batch order by batch_id desc limit 1")
    assert state == "CREATED"
    assert "is gone" in reason
    stored.rename(pipeline.store)
    assert replayed(pipeline, parent.batch_id, "replay-2").counts == {"accepted": 4, "reused": 16}
    states = pipeline.sql("select state from nightmill.batch order by batch_id")
    assert [one for (one,) in states] == ["PUBLISHED", "CANCELLED", "PUBLISHED"]


def test_once_newer_documents_are_published_an_older_batch_is_not_replayed(pipeline: Pipeline) -> None:
    parent = with_dead_letters(pipeline, BAD_INPUT)
    newer = run_unchecked(pipeline, "run-2").batch
    with pytest.raises(Terminal, match=rf"shows batch {newer.batch_id}, whose documents are newer.*Replay batch"):
        take_over(pipeline, parent.batch_id)
    assert replayed(pipeline, newer.batch_id).counts == {"accepted": 4, "reused": 16}


def test_newer_documents_that_are_published_meanwhile_stay_shown(pipeline: Pipeline) -> None:
    parent = with_dead_letters(pipeline, BAD_INPUT)
    child = take_over(pipeline, parent.batch_id)
    newer = run_unchecked(pipeline, "run-2").batch
    with pytest.raises(Blocked, match=rf"publish would refuse this run: .* shows batch {newer.batch_id} of"):
        pipeline.plan(child)
    pipeline.drive(pipeline.plan(child))  # cleared: its answers are wanted all the same
    with pytest.raises(Terminal, match=rf"shows batch {newer.batch_id}, which is newer"):
        publish_unchecked(pipeline, child)
    assert pipeline.sql("select distinct batch_id from results.notes") == [(newer.batch_id,)]


def test_a_cancelled_batch_goes_on_as_its_child_with_only_what_is_missing(pipeline: Pipeline) -> None:
    batch = pipeline.freeze()
    first, _ = pipeline.plan(batch)
    pipeline.drive([first])
    done = counts(pipeline, batch)["accepted"]
    cancel(pipeline, batch.batch_id)
    made = replayed(pipeline, batch.batch_id)
    assert made.counts == {"accepted": 20 - done, "reused": done}
    paid_once(pipeline, 20)


def test_a_replay_that_was_cancelled_and_cleared_goes_on_from_its_own_child_without_paying_again(
    pipeline: Pipeline,
) -> None:
    parent = with_dead_letters(pipeline, BAD_INPUT)
    executed = pipeline.simulator.books(summary=True)["executed"]
    child = take_over(pipeline, parent.batch_id)
    first, *_ = pipeline.plan(child)
    pipeline.drive([first])
    cancel(pipeline, child.batch_id)
    with pytest.raises(Terminal, match="is CANCELLED"):  # a retry
        take_over(pipeline, parent.batch_id, first_try=False)
    again = take_over(pipeline, parent.batch_id, first_try=False, max_tries=6)
    assert (again.run_id, again.incarnation, again.params["parent_batch"]) == (child.run_id, 2, child.batch_id)
    pipeline.drive(pipeline.plan(again))
    made = publish_unchecked(pipeline, again)
    assert (made.batch.state, len(shown(pipeline))) == (BatchState.PUBLISHED, 20)
    paid_once(pipeline, executed + 4)


def test_a_batch_that_was_cancelled_before_its_plan_is_planned_like_any_other(pipeline: Pipeline) -> None:
    with_dead_letters(pipeline, BAD_INPUT)
    batch = pipeline.freeze("run-2")
    cancel(pipeline, batch.batch_id)
    made = replayed(pipeline, batch.batch_id)
    assert made.counts == {"dead_lettered": 4, "reused": 16}  # nobody chose what gave up


def test_what_cannot_be_replayed_is_refused_with_the_way_out(pipeline: Pipeline) -> None:
    running = pipeline.freeze()
    with pytest.raises(Terminal, match=r"is PLANNING: only one that has ended"):
        take_over(pipeline, running.batch_id)
    cancel(pipeline, running.batch_id)
    parent = with_dead_letters(pipeline, BAD_INPUT)
    pipeline.edit("prompt.md", "{{ body }}", "{{ body }} {{ version }}")
    with pytest.raises(Terminal, match=r"uses version, which batch \d+ did not keep.*Trigger a new run"):
        take_over(pipeline, parent.batch_id)
    pipeline.edit("prompt.md", "{{ body }} {{ version }}", "{{ body }}")
    pipeline.edit("job.yaml", "view: notes", "view: notes_2")
    pipeline.apply()
    with pytest.raises(Terminal, match=r"belongs to job notes and results.notes, not to notes and results.notes_2"):
        take_over(pipeline, parent.batch_id)


def test_a_dead_letter_that_fails_again_is_one_of_the_child(pipeline: Pipeline) -> None:
    parent = with_dead_letters(pipeline, BAD_INPUT)
    set_faults(pipeline.simulator, line_error=[BAD_INPUT])
    made = replayed(pipeline, parent.batch_id)
    assert made.counts == {"dead_lettered": 4, "reused": 16}
    assert batch_of(pipeline, made.batch.batch_id).state is BatchState.PUBLISHED
    assert pipeline.sql(
        "select distinct origin_batch_id from nightmill.dead_letter where batch_id = %s", made.batch.batch_id
    ) == [(None,)]

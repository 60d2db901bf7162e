"""plan_shards: what is reused, what is asked again, what is not sent a second time."""

from __future__ import annotations

import pytest
from support.pipeline import Pipeline
from support.steps import (
    counts,
    paid_once,
    provider_batches,
    run_unchecked,
    set_faults,
)

from nightmill.stages import plan
from nightmill.storage import shards, usage

ASKED_ONCE = "repair: {attempts: 0}\n"  # the model that echoes would repeat the repair's words, which pass
STRICT_TITLE = """
    @field_validator("title")
    @classmethod
    def check(cls, value: str) -> str:
        if {rule}:
            raise ValueError("no")
        return value
"""


def add_validator(pipeline: Pipeline, rule: str) -> None:
    """A new rule in output.py that leaves the schema as it is."""
    pipeline.edit("output.py", "ConfigDict\n", "ConfigDict, field_validator\n")
    pipeline.edit("output.py", "pages: int\n", "pages: int\n" + STRICT_TITLE.format(rule=rule))


def test_only_the_changed_document_is_asked_again(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    pipeline.sql("update documents set body = 'Changed.', version = '2' where id = 'doc-05'")
    assert run_unchecked(pipeline, "run-2").counts == {"accepted": 1, "reused": 19}
    paid_once(pipeline, 21)


def test_each_change_of_the_contract_is_executed_anew_and_going_back_is_reused(pipeline: Pipeline) -> None:
    changes = {
        "prompt": ("prompt.md", "Summarise", "Describe"),
        "model": ("job.yaml", "model: echo-1", "model: echo-2"),
        "parameters": ("job.yaml", "max_completion_tokens: 50", "max_completion_tokens: 60"),
        "transform version": ("job.yaml", "provider:", "transform: {version: '2'}\nprovider:"),
        "schema": ("output.py", "    pages: int", "    pages: int\n    words: int"),
    }
    pipeline.sql("delete from documents where id > 'doc-04'")
    run_unchecked(pipeline)
    for what, (file, old, new) in changes.items():
        pipeline.edit(file, old, new)
        pipeline.apply()
        assert run_unchecked(pipeline, what).counts == {"accepted": 4}, what
    assert pipeline.simulator.books(summary=True)["executed"] == 24
    pipeline.edit("job.yaml", "model: echo-2", "model: echo-3")
    pipeline.edit("job.yaml", "model: echo-3", "model: echo-2")
    assert run_unchecked(pipeline, "back").counts == {"reused": 4}


def test_stored_answers_that_pass_changed_rules_are_reused_without_a_call(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    add_validator(pipeline, "not value")
    report = run_unchecked(pipeline, "run-2")
    assert report.counts == {"reused": 20}
    assert pipeline.sql("select distinct validators_hash from nightmill.result") == [(pipeline.live.validators_hash,)]
    paid_once(pipeline, 20)


def test_stored_answers_that_fail_changed_rules_are_asked_again_as_a_new_revision(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", f"{ASKED_ONCE}gaps: {{min_completion: 0}}\npublish:")
    run_unchecked(pipeline)
    # The model answers the same again, so what is asked again ends as a dead letter and the old answer is not shown.
    add_validator(pipeline, "'number 7.' in value")
    report = run_unchecked(pipeline, "run-2")
    assert report.counts == {"reused": 19, "dead_lettered": 1}
    assert report.gaps == [("dead_lettered/output/schema", 1)]
    assert pipeline.sql("select * from results.notes where source_id = 'doc-07'") == []


def test_an_answer_asked_again_under_changed_rules_becomes_the_effective_revision(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    pipeline.sql(
        "update nightmill.result set answer = jsonb_build_object('title', 'OLD', 'pages', 0) where source_id = 'doc-07'"
    )
    add_validator(pipeline, "value == 'OLD'")
    report = run_unchecked(pipeline, "run-2")
    assert report.counts == {"reused": 19, "accepted": 1}
    revisions = pipeline.sql(
        "select revision, effective, answer ->> 'title' like 'Summarise%' from nightmill.result "
        "where source_id = 'doc-07' order by revision"
    )
    assert revisions == [(1, False, False), (2, True, True)]
    assert pipeline.simulator.books(summary=True)["executed"] == 21


def test_a_new_citation_rule_is_held_against_stored_answers_and_their_documents(pipeline: Pipeline) -> None:
    pipeline.write("prompt.md", "<!-- system -->\nRepeat.\n<!-- user -->\n{{ body }}\n")
    run_unchecked(pipeline)
    pipeline.sql(
        "update nightmill.result set answer = jsonb_build_object('title', 'An invented quotation.', 'pages', 0) "
        "where source_id = 'doc-19'"
    )
    pipeline.edit("job.yaml", "publish:", "validation: {citations: [{quote: title, source: body}]}\npublish:")
    report = run_unchecked(pipeline, "run-2")
    assert report.counts == {"reused": 19, "accepted": 1}
    [(citations,)] = pipeline.sql("select citations from nightmill.result where source_id = 'doc-19' and effective")
    assert citations[0]["start"] == 0
    renewed = "select count(*) from results.notes join nightmill.result using (result_id) where {} = 0"
    places = ("(notes.citations -> 0 ->> 'start')::int", "(result.citations -> 0 ->> 'start')::int")
    assert [pipeline.sql(renewed.format(place)) for place in places] == [[(20,)], [(20,)]]
    run_unchecked(pipeline, "run-3")  # rows that are shown are copied with their places
    assert pipeline.sql(renewed.format(places[0])) == [(20,)]


def test_reprocess_sends_everything_again_as_new_revisions(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    report = run_unchecked(pipeline, "run-2", params={"reprocess": True})
    assert report.counts == {"accepted": 20}
    assert pipeline.simulator.books(summary=True)["executed"] == 40
    assert pipeline.sql("select revision, effective, count(*) from nightmill.result group by 1, 2 order by 1") == [
        (1, False, 20),
        (2, True, 20),
    ]
    shown = pipeline.sql("select distinct revision from results.notes join nightmill.result using (result_id)")
    assert shown == [(2,)]


def test_a_result_taken_out_of_use_by_hand_is_asked_again_and_stands_in_nobodys_way(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    pipeline.sql("update nightmill.result set effective = false where source_id = 'doc-07'")
    assert run_unchecked(pipeline, "run-2").counts == {"reused": 19, "accepted": 1}
    assert run_unchecked(pipeline, "run-3", params={"reprocess": True}).counts == {"accepted": 20}
    of_one = "select revision, effective from nightmill.result where source_id = 'doc-07' order by revision"
    assert pipeline.sql(of_one) == [(1, False), (2, False), (3, True)]


def test_rows_of_reused_answers_are_copied_from_the_published_batch_of_the_same_contract(pipeline: Pipeline) -> None:
    def shown() -> list[tuple[object, ...]]:
        columns = "source_id, source_version, tenant, domain, result_id, model, answered_at, title, pages"
        return pipeline.sql(f"select {columns} from results.notes order by source_id")

    run_unchecked(pipeline)
    first = shown()
    pipeline.sql("update nightmill.result set answer = '{}' where source_id = 'doc-07'")  # tells which way a row came
    assert run_unchecked(pipeline, "run-2").counts == {"reused": 20}
    assert shown() == first
    pipeline.sql("delete from nightmill.rows_notes where source_id = 'doc-05'")
    assert run_unchecked(pipeline, "run-3").counts == {"reused": 20}
    assert shown() == first
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0}\npublish:")
    assert run_unchecked(pipeline, "run-4").counts == {"reused": 20}
    assert [now[0] for was, now in zip(first, shown(), strict=True) if was != now] == ["doc-07"]


def test_what_reuse_saves_is_summed_when_it_is_settled_as_the_results_tell_it(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    made = run_unchecked(pipeline, "run-2")
    summed = "select answers, prompt_tokens, output_tokens, estimated from nightmill.reuse_usage where batch_id = %s"
    told = made.reused
    assert pipeline.sql(summed, made.batch.batch_id) == [(20, told.prompt, told.completion, told.estimated)]
    pipeline.sql("delete from nightmill.reuse_usage")  # a batch of an earlier version has none
    with pipeline.env.ledger() as conn:
        assert usage.reused(conn, made.batch.batch_id) == told


def test_a_shard_knows_where_its_work_was_when_it_was_planned(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "shards: {count: 2}", "shards: {count: 1}")
    run_unchecked(pipeline)
    pipeline.sql("update documents set body = 'Changed.', version = '2' where id in ('doc-02', 'doc-03', 'doc-15')")
    [shard_id] = pipeline.plan(pipeline.freeze("run-2"))
    [(ordinals,)] = pipeline.sql("select ordinals::text from nightmill.shard where shard_id = %s", shard_id)
    with pipeline.env.ledger() as conn:
        shard = shards.get(conn, shard_id)
        found = [ordinal for ordinal, _ in shards.unsettled(conn, shard)]
        assert shards.any_unsettled(conn, shard)
    assert len(found) == 3
    assert ordinals == f"{{[{found[0]},{found[-1] + 1})}}"  # so near to each other that one look is cheaper


def test_the_same_document_of_another_tenant_is_asked_for_itself(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    pipeline.sql("update documents set tenant = 'newcomer' where id = 'doc-05'")
    report = run_unchecked(pipeline, "run-2")
    assert report.counts == {"accepted": 1, "reused": 19}


@pytest.mark.parametrize(
    ("fault", "gap", "sent_again"),
    [
        ({"status": 400, "code": "invalid_value", "times": None}, "dead_lettered/input/invalid_value", False),
        ({"status": 400, "code": "content_filter", "times": None}, "dead_lettered/policy/content_filter", False),
        ({"status": 500, "code": "server_error", "times": None}, "dead_lettered/transient/server_error", True),
    ],
    ids=["input", "policy", "transient"],
)
def test_what_gave_up_for_good_is_not_sent_again_and_what_was_transient_is(
    pipeline: Pipeline, fault: dict[str, object], gap: str, sent_again: bool
) -> None:
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0.9}\npublish:")
    set_faults(pipeline.simulator, line_error=[{"match": "-4$", **fault}])
    first = run_unchecked(pipeline)
    assert first.gaps == [(gap, 1)]
    set_faults(pipeline.simulator)
    second = run_unchecked(pipeline, "run-2")
    if sent_again:
        assert second.counts == {"accepted": 1, "reused": 19}
        paid_once(pipeline, 20)
    else:
        assert second.counts == {"dead_lettered": 1, "reused": 19}
        assert second.gaps == [(gap, 1)]
        assert second.spent.requests == 0
        paid_once(pipeline, 19)
        third = run_unchecked(pipeline, "run-3", params={"reprocess": True})
        assert third.counts == {"accepted": 20}


def test_an_exhausted_output_failure_is_not_sent_again_under_the_same_contract(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", f"{ASKED_ONCE}gaps: {{min_completion: 0.9}}\npublish:")
    add_validator(pipeline, "'number 7.' in value")
    assert run_unchecked(pipeline).gaps == [("dead_lettered/output/schema", 1)]
    executed = pipeline.simulator.books(summary=True)["executed"]
    assert executed == 20
    report = run_unchecked(pipeline, "run-2")
    assert report.gaps == [("dead_lettered/output/schema", 1)]
    assert pipeline.simulator.books(summary=True)["executed"] == executed


def test_planning_again_before_anything_was_sent_makes_a_new_plan(pipeline: Pipeline) -> None:
    batch = pipeline.freeze()
    first = pipeline.plan(batch)
    second = pipeline.plan(batch)
    assert len(first) == len(second) == 2
    assert not set(first) & set(second)


def test_planning_again_after_something_was_sent_keeps_the_plan(pipeline: Pipeline) -> None:
    set_faults(pipeline.simulator, hold=True)
    batch = pipeline.freeze()
    first = pipeline.plan(batch)
    pipeline.wake(first[0])
    assert provider_batches(pipeline)
    plan.run(pipeline.env, batch.batch_id)
    with pipeline.env.ledger() as conn:
        assert [shard.shard_id for shard in shards.labels(conn, batch.batch_id)] == first
    set_faults(pipeline.simulator)
    pipeline.drive(first)
    assert counts(pipeline, batch) == {"accepted": 20}
    paid_once(pipeline, 20)


def test_a_dead_letter_of_other_rules_is_sent_again(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", f"{ASKED_ONCE}gaps: {{min_completion: 0.9}}\npublish:")
    refuses_seven = (
        "pages: int\n\n    def model_post_init(self, _):\n"
        "        if 'number 7.' in self.title:\n            raise ValueError('no')\n"
    )
    pipeline.edit("output.py", "pages: int\n", refuses_seven)
    assert run_unchecked(pipeline).counts == {"accepted": 19, "dead_lettered": 1}

    pipeline.edit("output.py", "'number 7.'", "'nothing'")

    assert run_unchecked(pipeline, "run-2").counts == {"accepted": 1, "reused": 19}


def test_a_larger_context_window_sends_what_was_too_long(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0.1}\npublish:")
    pipeline.edit("job.yaml", "  model: echo-1", "  model: echo-1\n  context_window_tokens: 100")
    assert run_unchecked(pipeline).counts["dead_lettered"] > 0

    pipeline.edit("job.yaml", "context_window_tokens: 100", "context_window_tokens: 100000")

    assert run_unchecked(pipeline, "run-2").counts.get("dead_lettered", 0) == 0

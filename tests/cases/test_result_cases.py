"""Result files and answers as they come back in the field: each case over a whole shard, or where its reader is."""

from __future__ import annotations

from datetime import timedelta

import pytest
import zstandard
from support.forced import executions, fault_log
from support.pipeline import Pipeline
from support.shard_under_faults import CONTENT, ITEMS, all_accepted, codes, driven, odd
from support.steps import counts, one_shard, paid_once, provider_batches, publish_unchecked, set_faults, wake_until

from nightmill.domain.errors import Blocked, Terminal
from nightmill.stages.run_shard import Waiting

NO_SIZE = {"route": "GET /v1/files/{file_id}", "status": 404, "times": None}


def test_c01_a_batch_without_an_output_file_gives_its_items_back_and_publishes_nothing(pipeline: Pipeline) -> None:
    set_faults(pipeline.simulator, line_error={"code": "server_overloaded", "times": None})
    batch, shard = one_shard(pipeline)
    with pytest.raises(Blocked, match="server_overloaded"):  # once more at first, then a person is asked
        pipeline.drive([shard])
    assert counts(pipeline, batch) == {"unsettled": ITEMS}
    assert codes(pipeline) == {("transient", "server_overloaded"): 2 * ITEMS}
    pipeline.drive([shard])  # cleared, and they fail on
    assert counts(pipeline, batch) == {"dead_lettered": ITEMS}
    with pytest.raises(Terminal, match="'dead_lettered/transient/server_overloaded': 20"):
        publish_unchecked(pipeline, batch)
    assert pipeline.sql("select count(*) from results.notes") == [(0,)]


def test_c02_lines_with_status_0_are_asked_again_whatever_the_counts_say(pipeline: Pipeline) -> None:
    all_accepted(pipeline, counts_lie=True, **odd("status_zero"))
    assert codes(pipeline) == {("transient", "provider_unknown"): 4}


def test_c04_result_files_that_are_named_late_are_waited_for(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "results_grace_s: 0", "results_grace_s: 900")
    all_accepted(pipeline, hide_files=3)
    assert len(provider_batches(pipeline)) == 1


def test_c04_paid_answers_whose_file_is_never_named_ask_a_person_and_are_not_paid_again(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "results_grace_s: 0", "results_grace_s: 900")
    set_faults(pipeline.simulator, hide_files=1_000)
    batch, shard = one_shard(pipeline)
    for _ in range(5):
        assert isinstance(pipeline.wake(shard), Waiting)
    pipeline.clock_offset += timedelta(minutes=16)
    with pytest.raises(Blocked, match="20 answers, which are paid for, and names no results"):
        for _ in range(100):
            pipeline.wake(shard)
    set_faults(pipeline.simulator)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": ITEMS}
    paid_once(pipeline, ITEMS)


def test_c05_c43_of_an_expired_batch_the_finished_half_is_kept_and_costed_and_the_rest_sent_again(
    pipeline: Pipeline,
) -> None:
    all_accepted(pipeline, expire_next=1)
    assert codes(pipeline) == {("transient", "batch_expired"): ITEMS // 2}
    unexecuted = {int(one["custom_id"].rpartition("-")[2]) for one in fault_log(pipeline.simulator)}
    again = pipeline.sql("select ordinal from nightmill.attempt group by ordinal having count(*) = 2")
    assert {ordinal for (ordinal,) in again} == unexecuted
    usage = pipeline.simulator.books(summary=True)["usage"]
    assert pipeline.sql("select sum(prompt_tokens), sum(output_tokens) from nightmill.attempt") == [
        (usage["prompt_tokens"], usage["completion_tokens"])
    ]


def test_c07_answers_in_any_order_reach_their_own_rows(pipeline: Pipeline) -> None:
    batch = all_accepted(pipeline)
    publish_unchecked(pipeline, batch)
    rows = pipeline.sql("select source_id, title from results.notes")
    assert all(f"Text number {int(source_id[-2:])}." in title for source_id, title in rows)


def test_c08_lines_in_neither_file_are_asked_again_after_a_few_further_looks(pipeline: Pipeline) -> None:
    all_accepted(pipeline, **odd("lost"))
    assert codes(pipeline) == {("transient", "lost_line"): 4}
    assert pipeline.simulator.books(summary=True)["calls"][CONTENT] == 5  # three further looks, then the second round's


def test_c08_c29_a_cut_that_nobody_can_notice_is_mended_by_the_second_look(pipeline: Pipeline) -> None:
    """Cut at the end of a line, no Content-Length, and the file object cannot be asked for its size."""
    all_accepted(pipeline, cut_content_unannounced=1, call=NO_SIZE)
    assert codes(pipeline) == {}


def test_c08_c29_two_such_cuts_in_a_row_are_mended_by_a_third_look(pipeline: Pipeline) -> None:
    all_accepted(pipeline, cut_content_unannounced=2, call=NO_SIZE)
    assert codes(pipeline) == {}
    [(token,)] = pipeline.sql("select token from nightmill.provider_batch")
    [kept] = pipeline.store.rglob(f"{token}-output.jsonl.zst")
    with zstandard.open(kept, "rt") as lines:
        assert len(list(lines)) == ITEMS


def test_c08_c29_a_cut_error_file_is_looked_at_again_too(pipeline: Pipeline) -> None:
    all_accepted(pipeline, cut_content_unannounced=1, call=NO_SIZE, line_error={"code": "server_overloaded"})
    assert codes(pipeline) == {("transient", "server_overloaded"): ITEMS}


def test_c11_a_line_twice_or_of_a_stranger_counts_once_or_not_at_all(pipeline: Pipeline) -> None:
    all_accepted(pipeline, answer=[odd("doubled")["answer"], odd("foreign", "-[5-8]$")["answer"]])
    assert codes(pipeline) == {}


def test_c11_two_answers_that_differ_count_as_none(pipeline: Pipeline) -> None:
    all_accepted(pipeline, **odd("conflicting"))
    assert codes(pipeline) == {("transient", "conflicting_lines"): 4}


def test_c11_an_answer_counts_more_than_an_error_line_of_the_same_request(pipeline: Pipeline) -> None:
    all_accepted(pipeline, **odd("both_files"))
    assert codes(pipeline) == {}


def test_c13_an_empty_error_file_is_no_failure(pipeline: Pipeline) -> None:
    all_accepted(pipeline, empty_error_files=True)
    [(error_file,)] = pipeline.sql("select result_refs ->> 'error' from nightmill.provider_batch")
    assert error_file is not None


@pytest.mark.parametrize("fault", ["cut_content", "cut_content_unannounced"])
def test_c29_a_cut_download_is_fetched_again_and_costs_nothing(pipeline: Pipeline, fault: str) -> None:
    all_accepted(pipeline, **{fault: 2})
    assert codes(pipeline) == {}


@pytest.mark.parametrize("status", [400, 404, 502])
def test_c31_c32_a_file_that_cannot_be_fetched_for_hours_is_waited_for_and_not_paid_again(
    pipeline: Pipeline, status: int
) -> None:
    set_faults(pipeline.simulator, call={"route": CONTENT, "status": status, "times": None})
    batch, shard = one_shard(pipeline)
    wake_until(pipeline, shard, "ENDED")
    pipeline.clock_offset += timedelta(hours=3)
    assert "provider not reachable" in pipeline.wake(shard).line
    set_faults(pipeline.simulator)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": ITEMS}
    paid_once(pipeline, ITEMS)


def test_c34_a_file_of_unreadable_lines_ends_its_batch_visibly_and_only_its_items_are_asked_again(
    pipeline: Pipeline,
) -> None:
    all_accepted(pipeline, **odd("half_line", ".*"))
    assert codes(pipeline) == {("transient", "lost_line"): ITEMS}
    assert [state for state, _, _ in provider_batches(pipeline)] == ["COLLECTED", "COLLECTED"]


def test_c44_usage_that_is_not_told_is_unknown_and_not_zero(pipeline: Pipeline) -> None:
    all_accepted(pipeline, **odd("no_usage"))
    assert pipeline.sql("select count(*) from nightmill.attempt where prompt_tokens is null") == [(4,)]
    assert pipeline.sql("select count(*) from nightmill.attempt where prompt_tokens = 0") == [(0,)]


def test_c47_a_rate_limit_in_a_line_sends_that_line_again(pipeline: Pipeline) -> None:
    limit = {"match": "-[1-4]$", "status": 429, "code": "rate_limit_exceeded", "type": "requests"}
    all_accepted(pipeline, line_error=limit)
    assert codes(pipeline) == {("transient", "rate_limit_exceeded"): 4}


def test_c65_a_body_without_an_answer_is_a_protocol_error_and_asked_again(pipeline: Pipeline) -> None:
    all_accepted(pipeline, answer=[odd("no_answer")["answer"], odd("error_in_body", "-[5-8]$")["answer"]])
    assert codes(pipeline) == {("transient", "provider_protocol_error"): 4, ("transient", "server_error"): 4}


@pytest.mark.parametrize("kind", ["nul", "surrogate"])
def test_c70_c71_what_postgres_cannot_hold_is_replaced_and_noted_and_costs_nothing(
    pipeline: Pipeline, kind: str
) -> None:
    batch = all_accepted(pipeline, **odd(kind))
    publish_unchecked(pipeline, batch)
    assert pipeline.sql("select count(*) from results.notes where title like '%%\ufffd'") == [(4,)]


@pytest.mark.parametrize("kind", ["nan", "huge_integer", "deep"])
def test_c74_numbers_that_are_none_and_absurd_nesting_are_asked_again(pipeline: Pipeline, kind: str) -> None:
    all_accepted(pipeline, **odd(kind))
    assert {failed for failed, _ in codes(pipeline)} == {"output"}


@pytest.mark.parametrize("kind", ["crlf", "blank_line", "bom", "line_separator", "string_body"])
def test_c76_line_endings_blank_lines_and_byte_order_marks_cost_nothing(pipeline: Pipeline, kind: str) -> None:
    all_accepted(pipeline, **odd(kind))
    assert codes(pipeline) == {}


def test_c77_a_truncated_answer_is_never_mended_and_asked_again(pipeline: Pipeline) -> None:
    all_accepted(pipeline, **odd("truncated"))
    assert codes(pipeline) == {("output", "truncated"): 4}


def test_c79_a_refusal_is_an_output_failure_and_a_filtered_answer_a_policy_of_the_provider(pipeline: Pipeline) -> None:
    batch = driven(pipeline, answer=[odd("refusal")["answer"], odd("filtered", "-[5-8]$")["answer"]])
    assert codes(pipeline) == {("output", "refusal"): 4, ("policy", "content_filter"): 4}
    assert counts(pipeline, batch) == {"accepted": ITEMS - 4, "dead_lettered": 4}
    assert executions(pipeline.simulator).total() == ITEMS + 4  # what a filter caught is not sent again


@pytest.mark.parametrize(
    ("kind", "note"),
    [("fenced", "unwrapped_fence"), ("encoded_twice", "decoded_twice"), ("nul", "sanitised")],
    ids=["c80", "c82", "c70"],
)
def test_c80_c82_a_lossless_mending_is_noted_beside_the_result(pipeline: Pipeline, kind: str, note: str) -> None:
    all_accepted(pipeline, **odd(kind))
    assert pipeline.sql("select count(*) from nightmill.result where %s = any(notes)", note) == [(4,)]


@pytest.mark.parametrize("kind", ["wrong_type", "prose"])
def test_c83_another_type_and_prose_around_an_answer_are_not_guessed_away(pipeline: Pipeline, kind: str) -> None:
    all_accepted(pipeline, **odd(kind))
    assert {failed for failed, _ in codes(pipeline)} == {"output"}

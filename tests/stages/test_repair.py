"""Answers that are not accepted: mended for nothing, asked for once more with what is wrong, or given more room."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from support.pipeline import OUTPUT, Pipeline
from support.replays import replayed
from support.steps import (
    counts,
    one_shard,
    paid_once,
    provider_batches,
    publish_unchecked,
    run_unchecked,
    set_faults,
)

from dev.practice_provider.server import RunningSimulator
from nightmill.domain.errors import Blocked, ProviderUnavailable, Terminal
from nightmill.jobs.rules.repair import output_reserve
from nightmill.jobs.settings.job import Job
from nightmill.providers.openai.transport import OpenAIBatches

StartSimulator = Callable[..., RunningSimulator]


def answering(
    pipeline: Pipeline, start_simulator: StartSimulator, tmp_path: Path, special: Sequence[dict[str, Any]]
) -> None:
    """A model that answers well, except where `special` says otherwise (the longest match wins)."""
    well = [{"match": f"Text number {n}.", "answer": {"title": f"t{n}", "pages": n}} for n in range(1, 21)]
    taken = {one["match"] for one in special}
    path = tmp_path / "gold.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in [*special, *(o for o in well if o["match"] not in taken)]))
    pipeline.simulator = start_simulator(gold_path=path)
    pipeline.edit("job.yaml", "model: echo-1", "model: gold-1")


IN_REVIEW = "repair: {exhausted: in_review}\ndead_letters: {max_count: 0}\ngaps: {min_completion: 0.5}\npublish:"
WRONG = '{"title": "t5", "pages": "five"}'
WRONG_TYPE = {"match": "Text number 5.", "answer": WRONG}
REPAIRED = {
    # The conversation goes on: the rejected answer, then the validator's finding.
    "match": f"{WRONG}\nYour answer above was rejected by an automatic check: pages: int_type.",
    "answer": {"title": "t5", "pages": 5},
}


def test_a_rejected_answer_is_shown_to_the_model_with_the_finding_and_its_repair_is_accepted(
    pipeline: Pipeline, start_simulator: StartSimulator, tmp_path: Path
) -> None:
    answering(pipeline, start_simulator, tmp_path, [WRONG_TYPE, REPAIRED])
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    assert pipeline.sql("select pages from nightmill.rows_notes where source_id = 'doc-05'") == [(5,)]
    attempts = pipeline.sql("select attempt_no, class, code from nightmill.attempt where ordinal = 4 order by 1")
    assert attempts == [(1, "output", "schema"), (2, None, None)]
    # The repair is another request than the first, and nobody else's was sent twice.
    paid_once(pipeline, 21)


def test_a_repair_says_which_quotation_the_document_does_not_hold_and_what_it_reads_instead(
    pipeline: Pipeline, start_simulator: StartSimulator, tmp_path: Path
) -> None:
    """The model is told in its own terms; the ledger keeps nothing of the document."""
    pipeline.sql("update documents set body = body || ' The fee is due within thirty days.'")
    told = '`title` is not in the document; nearest: "The fee is due within thirty days" ("sixty" is "thirty" there)'
    wrong = {"match": "Text number 5.", "answer": {"title": "The fee is due within sixty days", "pages": 5}}
    right = {"match": told, "answer": {"title": "fee is due", "pages": 5}}
    well = [{"match": "The fee is due", "answer": {"title": "within thirty days", "pages": 1}}]
    never = {"match": "Text number 6.", "answer": {"title": "The fee is not due", "pages": 6}}
    answering(pipeline, start_simulator, tmp_path, [wrong, right, never, *well])
    pipeline.edit("job.yaml", "publish:", "validation: {citations: [{quote: title, source: body}]}\npublish:")
    _, shard = one_shard(pipeline)
    pipeline.drive([shard])
    shown = pipeline.sql("select title, citations -> 0 ->> 'method' from nightmill.rows_notes where ordinal = 4")
    assert shown == [("fee is due", "exact")]
    letters = pipeline.sql("select code, message from nightmill.dead_letter where ordinal = 5")
    assert letters == [("citation_missing", "`title` is not in the document")]


JUDGING = """
    @field_validator("title")
    @classmethod
    def _in_words(cls, title: str) -> str:
        if title.isdigit():
            raise ValueError(f"{title} is no title: say it in words")
        return title
"""


def test_a_repair_says_what_a_validator_of_the_job_says_and_where_json_breaks_and_the_ledger_keeps_neither(
    pipeline: Pipeline, start_simulator: StartSimulator, tmp_path: Path
) -> None:
    pipeline.write("output.py", OUTPUT.replace("import", "import field_validator,", 1) + JUDGING)
    wrong = [
        {"match": "Text number 5.", "answer": {"title": "5551234", "pages": 5}},
        {"match": "Text number 6.", "answer": {"title": "6661234", "pages": 6}},
        {"match": "Text number 7.", "answer": '{"title": "t7", "pages": }'},
    ]
    told = "title: value_error: Value error, 5551234 is no title: say it in words. Answer the request again"
    where = "Invalid JSON: expected value at line 1 column 26; expected one JSON object with the keys title, pages."
    right = [{"match": told, "answer": {"title": "five", "pages": 5}}]
    right.append({"match": where, "answer": {"title": "seven", "pages": 7}})
    answering(pipeline, start_simulator, tmp_path, wrong + right)
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 19, "dead_lettered": 1}
    shown = pipeline.sql("select title from nightmill.rows_notes where ordinal in (4, 6) order by ordinal")
    assert shown == [("five",), ("seven",)]
    letters = pipeline.sql("select ordinal, message from nightmill.dead_letter")
    assert letters == [(5, "title: value_error")]
    paid_once(pipeline, 23)


def test_without_repairs_a_rejected_answer_is_final(
    pipeline: Pipeline, start_simulator: StartSimulator, tmp_path: Path
) -> None:
    answering(pipeline, start_simulator, tmp_path, [WRONG_TYPE, REPAIRED])
    pipeline.edit("job.yaml", "publish:", "repair: {attempts: 0}\npublish:")
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 19, "dead_lettered": 1}
    assert pipeline.sql("select class, code, message, attempts from nightmill.dead_letter") == [
        ("output", "schema", "pages: int_type", 1)
    ]
    paid_once(pipeline, 20)


def test_a_repair_that_fails_too_gives_the_item_up(
    pipeline: Pipeline, start_simulator: StartSimulator, tmp_path: Path
) -> None:
    answering(pipeline, start_simulator, tmp_path, [WRONG_TYPE])
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 19, "dead_lettered": 1}
    assert pipeline.sql("select code, attempts from nightmill.dead_letter") == [("schema", 2)]
    paid_once(pipeline, 21)


def test_where_the_job_says_so_an_item_whose_repair_fails_too_waits_in_review(
    pipeline: Pipeline, start_simulator: StartSimulator, tmp_path: Path
) -> None:
    answering(pipeline, start_simulator, tmp_path, [WRONG_TYPE])
    set_faults(pipeline.simulator, line_error=[{"match": "-7$", "status": 400, "code": "bad", "times": None}])
    pipeline.edit("job.yaml", "publish:", IN_REVIEW)
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 18, "in_review": 1, "dead_lettered": 1}
    made = publish_unchecked(pipeline, batch)
    assert sorted(made.gaps) == [("dead_lettered/input/bad", 1), ("in_review/output/schema", 1)]
    assert made.shown is not None
    assert made.shown.gaps == 2
    assert pipeline.sql("select class, code, message, attempts, ended_as from nightmill.dead_letter order by 1") == [
        ("input", "bad", ANY, 1, "dead_lettered"), ("output", "schema", "pages: int_type", 2, "in_review"),
    ]  # fmt: skip


def test_an_item_in_review_counts_as_a_gap_against_the_completion_rate(
    pipeline: Pipeline, start_simulator: StartSimulator, tmp_path: Path
) -> None:
    answering(pipeline, start_simulator, tmp_path, [WRONG_TYPE])
    pipeline.edit("job.yaml", "publish:", "repair: {exhausted: in_review}\npublish:")
    with pytest.raises(
        Terminal, match=r"1 gap, and job.yaml allows none .*; gaps by code: .'in_review/output/schema': 1"
    ):
        run_unchecked(pipeline)


def test_an_item_in_review_is_not_asked_again_until_somebody_replays_it(
    pipeline: Pipeline, start_simulator: StartSimulator, tmp_path: Path
) -> None:
    answering(pipeline, start_simulator, tmp_path, [WRONG_TYPE])
    pipeline.edit("job.yaml", "publish:", IN_REVIEW)
    run_unchecked(pipeline)
    paid_once(pipeline, 21)
    pipeline.edit("job.yaml", "exhausted: in_review", "exhausted: dead_lettered")
    second = run_unchecked(pipeline, "run-2")
    assert second.counts == {"reused": 19, "in_review": 1}
    assert second.alerts == []
    paid_once(pipeline, 21)
    third = replayed(pipeline, second.batch.batch_id, ended_as=["in_review"])
    assert third.counts == {"reused": 19, "dead_lettered": 1}
    assert pipeline.simulator.books(summary=True)["executed"] == 23


def test_a_repair_whose_upload_was_interrupted_is_sent_as_the_same_repair(
    pipeline: Pipeline, start_simulator: StartSimulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(pipeline, start_simulator, tmp_path, [WRONG_TYPE, REPAIRED])
    batch, shard = one_shard(pipeline)
    real, files = OpenAIBatches.stage_input, []

    def upload(self: OpenAIBatches, path: Path) -> str:
        files.append(path.read_bytes())
        if len(files) == 2:
            raise ProviderUnavailable("down", "wait")
        return real(self, path)

    monkeypatch.setattr(OpenAIBatches, "stage_input", upload)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    first, interrupted, again = files
    assert interrupted == again
    assert first != again
    paid_once(pipeline, 21)


def test_a_fence_and_doubly_written_json_are_taken_off_without_asking_again(
    pipeline: Pipeline, start_simulator: StartSimulator, tmp_path: Path
) -> None:
    plain = '{"title": "t", "pages": 1}'
    special = [{"match": f"Text number {n}.", "answer": f"```json\n{plain}\n```"} for n in (3, 4)]
    special.append({"match": "Text number 6.", "answer": json.dumps(plain)})
    answering(pipeline, start_simulator, tmp_path, special)
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    notes = pipeline.sql("select source_id, notes from nightmill.result where notes <> '{}' order by 1")
    assert notes == [
        ("doc-03", ["unwrapped_fence"]),
        ("doc-04", ["unwrapped_fence"]),
        ("doc-06", ["decoded_twice"]),
    ]
    paid_once(pipeline, 20)


def test_an_answer_cut_off_at_its_limit_is_asked_for_with_twice_the_room(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "max_completion_tokens: 50", "max_completion_tokens: 15")
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    attempts = pipeline.sql("select attempt_no, code, finish_reason, count(*) from nightmill.attempt group by 1, 2, 3")
    assert sorted(attempts) == [(1, "truncated", "length", 20), (2, None, "stop", 20)]
    assert len(provider_batches(pipeline)) == 2
    assert pipeline.simulator.books(summary=True)["executed"] == 40


def test_an_answer_cut_off_at_the_jobs_cap_is_not_paid_for_again(pipeline: Pipeline) -> None:
    set_faults(pipeline.simulator, answer={"kind": "truncated", "match": "-[5-7]$", "times": None})
    pipeline.edit("job.yaml", "publish:", "repair: {attempts: 3, max_output_tokens_cap: 50}\npublish:")
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 17, "dead_lettered": 3}
    said = "the answer ended at the token limit; raise provider.parameters.max_completion_tokens, or "
    assert pipeline.sql("select distinct code, message, attempts from nightmill.dead_letter") == [
        ("truncated", f"{said}repair.max_output_tokens_cap", 1)
    ]
    paid_once(pipeline, 20)


def test_where_all_answers_are_cut_off_at_the_jobs_cap_a_person_is_asked_and_a_higher_cap_mends_it(
    pipeline: Pipeline,
) -> None:
    pipeline.edit("job.yaml", "max_completion_tokens: 50", "max_completion_tokens: 15")
    pipeline.edit("job.yaml", "publish:", "repair: {max_output_tokens_cap: 15}\npublish:")
    batch, shard = one_shard(pipeline)
    with pytest.raises(Blocked, match=r"All 20 lines .*\(truncated\).*Remedy: Raise repair.max_output_tokens_cap"):
        pipeline.drive([shard])
    assert counts(pipeline, batch) == {"unsettled": 20}
    assert pipeline.simulator.books(summary=True)["executed"] == 20
    pipeline.edit("job.yaml", "max_output_tokens_cap: 15", "max_output_tokens_cap: 30")
    pipeline.drive([shard])  # cleared
    assert counts(pipeline, batch) == {"accepted": 20}
    assert pipeline.simulator.books(summary=True)["executed"] == 40


def test_where_all_answers_are_cut_off_with_twice_the_room_too_nothing_else_is_sent_and_a_person_is_asked(
    pipeline: Pipeline,
) -> None:
    pipeline.edit("job.yaml", "max_completion_tokens: 50", "max_completion_tokens: 3")
    pipeline.edit("job.yaml", "publish:", "breaker: {requests: 10, pilot_items: 10, pilot_above_items: 10}\npublish:")
    batch, shard = one_shard(pipeline)
    with pytest.raises(Blocked, match=r"failed with the same error \(truncated\)"):
        pipeline.drive([shard])
    assert pipeline.simulator.books(summary=True)["executed"] == 20  # the pilot, and ten once more
    assert counts(pipeline, batch)["unsettled"] >= 10


def job(parameters: dict[str, int], cap: int | None) -> Job:
    return Job.model_validate(
        {
            "description": "x",
            "source": {"conn_id": "s", "query": "select 1", "columns": {"id": "id", "text": "body"}},
            "provider": {"conn_id": "p", "model": "m", "parameters": parameters},
            "repair": {"max_output_tokens_cap": cap},
            "publish": {"view": "v"},
        }
    )


@pytest.mark.parametrize(
    ("parameters", "cap", "reserves"),
    [
        ({"max_completion_tokens": 100}, None, [100, 200, 200]),
        ({"max_completion_tokens": 100}, 500, [100, 200, 400, 500, 500]),
        ({"max_tokens": 100}, 100, [100, 100]),
        ({"max_tokens": 100}, 50, [100, 100]),  # a cap below what the job asks for takes nothing away
        ({}, 500, [0, 0]),  # the model's own limit cut it
    ],
)
def test_the_room_for_an_answer_doubles_up_to_the_cap(
    parameters: dict[str, int], cap: int | None, reserves: list[int]
) -> None:
    one = job(parameters, cap)
    assert [output_reserve(one, one, truncations) for truncations in range(len(reserves))] == reserves

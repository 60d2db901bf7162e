"""A check is one value in a list: these live outside include/, and what they find reaches the ledger."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import ROOT, counts, one_shard, paid_once, run_unchecked

from dev.practice_provider.server import RunningSimulator
from nightmill.checks import registry
from nightmill.checks.checker import Checker
from nightmill.checks.port import (
    AnswerCheck,
    AnswerSubject,
    Code,
    Finding,
    InputCheck,
    InputSubject,
    Need,
    Severity,
)
from nightmill.domain.failures import Action, Failure, FailureClass
from nightmill.domain.outcomes import Accepted

LETTERS = "select class, code, message, attempts, ended_as from nightmill.dead_letter order by ordinal"
GAPS = "gaps: {min_completion: 0.5}\ndead_letters: {max_count: 9}\npublish:"


def examples() -> list[ModuleType]:
    """The code of the page, run as modules."""
    page = (ROOT / "docs/guides/write_a_check.md").read_text("utf-8")
    made = []
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page, re.DOTALL)):
        module = ModuleType(f"example_{number}")
        exec(code, module.__dict__)
        made.append(module)
    return made


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Adds checks to the lists for one test."""

    def add(*checks: AnswerCheck | InputCheck) -> None:
        answers = [one for one in checks if isinstance(one, AnswerCheck)]
        inputs = [one for one in checks if isinstance(one, InputCheck)]
        monkeypatch.setattr(registry, "ANSWER_CHECKS", [*registry.ANSWER_CHECKS, *answers])
        monkeypatch.setattr(registry, "INPUT_CHECKS", [*registry.INPUT_CHECKS, *inputs])

    return add


@pytest.fixture
def answering(pipeline: Pipeline, start_simulator: Callable[..., RunningSimulator], tmp_path: Path) -> Iterator[Any]:
    """A model that answers `t1` .. `t20`, and as it is told for other numbers."""

    def start(*more: dict[str, Any], **titles: str) -> None:
        lines = [
            *more,
            *(
                {"match": f"Text number {n}.", "answer": {"title": titles.get(f"t{n}", f"t{n}"), "pages": n}}
                for n in range(1, 21)
            ),
        ]
        path = tmp_path / "gold.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)))
        pipeline.simulator = start_simulator(gold_path=path)
        pipeline.edit("job.yaml", "model: echo-1", "model: gold-1")
        pipeline.edit("job.yaml", "publish:", GAPS)

    return start


def of_answers(
    run: Callable[[AnswerSubject], Sequence[Finding]], *codes: Code, needs: Need | None = None
) -> AnswerCheck:
    return AnswerCheck("toy", codes, lambda _definition, _explain: run, needs or Need(0))


def test_the_pages_check_of_answers_gives_an_item_its_class_code_and_message(
    pipeline: Pipeline, listed: Any, answering: Any
) -> None:
    listed(examples()[0].PLACEHOLDER)
    answering(t5="Unknown")
    pipeline.edit("job.yaml", "publish:", "repair: {attempts: 0}\npublish:")
    report = run_unchecked(pipeline)
    assert report.counts == {"accepted": 19, "dead_lettered": 1}
    assert report.gaps == [("dead_lettered/output/placeholder", 1)]
    assert pipeline.sql(LETTERS) == [("output", "placeholder", "`title` says nothing", 1, "dead_lettered")]


def test_the_model_is_told_what_the_check_says_and_the_ledger_keeps_nothing_of_it(
    pipeline: Pipeline, listed: Any, answering: Any
) -> None:
    listed(examples()[0].PLACEHOLDER)
    rejected = "Your answer above was rejected by an automatic check: 'Unknown' is no title: find one."
    answering({"match": rejected, "answer": {"title": "found", "pages": 5}}, t5="Unknown")
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    assert pipeline.sql("select title from nightmill.rows_notes where source_id = 'doc-05'") == [("found",)]
    assert pipeline.sql("select code from nightmill.attempt where code is not null") == [("placeholder",)]
    assert pipeline.sql("select from nightmill.attempt where attempt::text like '%Unknown%'") == []


def test_a_stored_answer_is_checked_again_under_new_rules_before_it_is_reused(
    pipeline: Pipeline, listed: Any, answering: Any
) -> None:
    answering(t5="Unknown")
    assert run_unchecked(pipeline).counts == {"accepted": 20}
    listed(examples()[0].PLACEHOLDER)
    pipeline.edit("job.yaml", "publish:", "repair: {attempts: 0}\nvalidation: {time_zone: UTC}\npublish:")
    assert run_unchecked(pipeline, "run-2").counts == {"reused": 19, "dead_lettered": 1}
    assert pipeline.simulator.books(summary=True)["executed"] == 21


def test_the_pages_check_of_inputs_refuses_an_item_as_policy_and_nothing_is_sent_for_it(
    pipeline: Pipeline, listed: Any
) -> None:
    listed(examples()[1].NOT_CONFIDENTIAL)
    pipeline.sql("update documents set body = 'CONFIDENTIAL ' || body where id in ('doc-03', 'doc-07')")
    pipeline.edit("job.yaml", "publish:", GAPS)
    report = run_unchecked(pipeline)
    assert report.counts == {"accepted": 18, "dead_lettered": 2}
    message = "never sent: the document is marked as confidential"
    assert pipeline.sql(LETTERS) == [("policy", "marked_confidential", message, 0, "dead_lettered")] * 2
    paid_once(pipeline, 18)
    again = run_unchecked(pipeline, "run-2")
    assert again.counts == {"reused": 18, "dead_lettered": 2}
    paid_once(pipeline, 18)


def test_what_a_check_of_inputs_refused_is_sent_once_it_has_no_objection(
    pipeline: Pipeline, listed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = examples()[1].NOT_CONFIDENTIAL
    listed(check)
    pipeline.sql("update documents set body = 'CONFIDENTIAL ' || body where id = 'doc-03'")
    pipeline.edit("job.yaml", "publish:", GAPS)
    assert run_unchecked(pipeline).counts == {"accepted": 19, "dead_lettered": 1}
    agreeing = InputCheck(check.name, check.codes, lambda _definition: None)
    monkeypatch.setattr(registry, "INPUT_CHECKS", [*registry.INPUT_CHECKS[:-1], agreeing])
    assert run_unchecked(pipeline, "run-2").counts == {"reused": 19, "accepted": 1}
    paid_once(pipeline, 20)


def test_a_check_that_raises_settles_its_item_with_its_place_and_the_others_are_accepted(
    pipeline: Pipeline, listed: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def answer_raises(subject: AnswerSubject) -> Sequence[Finding]:
        if "number 3." in subject.document["body"]:
            raise KeyError(subject.document["body"])
        return ()

    def input_raises(subject: InputSubject) -> Sequence[Finding]:
        if "number 4." in subject.text:
            raise RecursionError(subject.text)
        return ()

    listed(of_answers(answer_raises, needs=Need.DOCUMENT), InputCheck("toy", (), lambda _definition: input_raises))
    pipeline.edit("job.yaml", "publish:", GAPS)
    with caplog.at_level(logging.DEBUG):
        assert run_unchecked(pipeline).counts == {"accepted": 18, "dead_lettered": 2}
    (of_answer, of_input) = pipeline.sql(LETTERS)
    assert of_answer[:2] + of_answer[3:] == ("output", "check_raised", 1, "dead_lettered")
    assert of_input[:2] + of_input[3:] == ("input", "check_raised", 0, "dead_lettered")
    assert re.fullmatch(r"the check `toy` raised KeyError at test_one_value_in_a_list.py:\d+", of_answer[2])
    assert re.fullmatch(r"the check `toy` raised RecursionError at test_one_value_in_a_list.py:\d+", of_input[2])
    assert "Text number" not in caplog.text
    paid_once(pipeline, 19)


def test_a_finding_that_asks_a_person_puts_its_answer_in_review_without_another_request(
    pipeline: Pipeline, listed: Any
) -> None:
    code = Code("low_confidence", FailureClass.OUTPUT, "a toy", Action.ASK)

    def unsure(subject: AnswerSubject) -> Sequence[Finding]:
        return (Finding("low_confidence", "`pages` is a guess"),) if "number 3." in subject.document["body"] else ()

    listed(of_answers(unsure, code, needs=Need.DOCUMENT))
    pipeline.edit("job.yaml", "publish:", GAPS)
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 19, "in_review": 1}
    assert pipeline.sql(LETTERS) == [("output", "low_confidence", "`pages` is a guess", 1, "in_review")]
    paid_once(pipeline, 20)


def test_a_note_refuses_nothing_and_stands_beside_the_result(
    pipeline: Pipeline, listed: Any, caplog: pytest.LogCaptureFixture
) -> None:
    note = Code("toy_note", FailureClass.OUTPUT, "a toy")
    found = (Finding("toy_note", "", severity=Severity.NOTE),)
    listed(of_answers(lambda _: found, note), InputCheck("toy", (note,), lambda _: lambda _: found))
    with caplog.at_level(logging.INFO):
        assert run_unchecked(pipeline).counts == {"accepted": 20}
    assert pipeline.sql("select distinct notes from nightmill.result") == [(["toy_note"],)]
    assert "checks of inputs noted 20 toy_note" in caplog.text


def test_an_undeclared_code_is_a_fault_of_the_check_and_an_odd_one_is_refused_at_once(pipeline: Pipeline) -> None:
    checks = [*registry.ANSWER_CHECKS, of_answers(lambda _: (Finding("made_up", ""),))]
    verdict = Checker(pipeline.live, checks=checks).check_text('{"title": "t", "pages": 1}', {})
    assert isinstance(verdict, Failure)
    assert verdict.code == "check_raised"
    assert "UndeclaredCode" in verdict.message
    with pytest.raises(ValueError, match=r"got 'a,b'"):
        Code("a,b", FailureClass.OUTPUT, "")


def test_the_first_refusal_gives_the_code_and_the_model_is_told_all_of_them(pipeline: Pipeline) -> None:
    def found(word: str) -> AnswerCheck:
        return of_answers(lambda _: (Finding(word, f"{word} is wrong"),), Code(word, FailureClass.OUTPUT, ""))

    checks = [*registry.ANSWER_CHECKS, found("one"), found("two")]
    text = '{"title": "t", "pages": 1}'
    first = Checker(pipeline.live, checks=checks).check_text(text, {})
    told = Checker(pipeline.live, explain=True, checks=checks).check_text(text, {})
    assert first == Failure(FailureClass.OUTPUT, "one", "one is wrong")
    assert told == Failure(FailureClass.OUTPUT, "one", "one is wrong; two is wrong")


def test_nothing_is_read_or_run_that_no_check_of_the_job_asks_for(pipeline: Pipeline) -> None:
    assert not Checker(pipeline.live).needs_payload

    def never(_: AnswerSubject) -> Sequence[Finding]:
        raise AssertionError

    fresh_only = [of_answers(never, needs=need) for need in (Need.MESSAGE, Need.VECTOR)]
    checks = [*registry.ANSWER_CHECKS, *fresh_only]
    assert isinstance(Checker(pipeline.live, checks=checks).check_text('{"title": "t", "pages": 1}', {}), Accepted)


def test_every_code_is_declared_once_among_answers_and_once_among_inputs() -> None:
    for checks in (registry.ANSWER_CHECKS, registry.INPUT_CHECKS):
        words = [code.word for check in checks for code in check.codes]
        assert len(words) == len(set(words))
        assert len({check.name for check in checks}) == len(checks)

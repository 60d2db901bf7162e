"""An answer that must not be read at all: it was cut off, filtered, declined or is empty."""

from __future__ import annotations

from collections.abc import Sequence

from nightmill.checks.port import NOTHING, AnswerCheck, AnswerRun, AnswerSubject, Code, Finding, Need
from nightmill.domain.classification import classify_unfinished_answer
from nightmill.domain.failure_rules import ENDINGS
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.rules.repair import is_truncation


def _prepare(definition: JobDefinition, _explain: bool) -> AnswerRun:
    advice = f"the answer ended at the token limit; {_advice(definition.job.provider.limited_by)}"

    def run(subject: AnswerSubject) -> Sequence[Finding]:
        failure = classify_unfinished_answer(subject.ending, subject.refusal, subject.text, subject.instead)
        if failure is None:
            return NOTHING
        cut = is_truncation(failure.kind, failure.code)
        return (Finding(failure.code, advice if cut else failure.message),)

    return run


def _advice(key: str | None) -> str:
    """`key` of job.yaml limits the answers."""
    if key is None:
        return "job.yaml sets no limit, so the model's own one cut it: ask for shorter answers"
    return f"raise {key}, or repair.max_output_tokens_cap"


UNFINISHED = AnswerCheck(
    name="unfinished",
    codes=tuple(Code(rule.code or "", rule.kind, rule.evidence) for rule in ENDINGS),
    prepare=_prepare,
    needs=Need.MESSAGE,
)

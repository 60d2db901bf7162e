"""An answer against its model in output.py: JSON, shape, types, numbers, and the job's own validators."""

from __future__ import annotations

from collections.abc import Sequence

from nightmill.checks.port import NOTHING, AnswerCheck, AnswerRun, AnswerSubject, Code, Finding
from nightmill.domain.failures import FailureClass
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.output.answer_schema import AnswerReader, Invalid


def _prepare(definition: JobDefinition, explain: bool) -> AnswerRun:
    read = AnswerReader(definition.output, zone=definition.job.validation.time_zone, explain=explain).read

    def run(subject: AnswerSubject) -> Sequence[Finding]:
        found = read(subject.text)
        if isinstance(found, Invalid):
            return (Finding(found.code, found.message, field=_place(found), told=found.told),)
        subject.answer, subject.notes = found.answer, found.notes
        return NOTHING

    return run


def _place(invalid: Invalid) -> str:
    """Of the first of its findings ("lines.0.amount: float_type")."""
    return invalid.findings[0].rpartition(": ")[0] if invalid.findings else ""


def _code(word: str, meaning: str) -> Code:
    return Code(word, FailureClass.OUTPUT, meaning)


SCHEMA = AnswerCheck(
    name="schema",
    codes=(
        _code("not_json", "the answer is no JSON object"),
        _code("schema", "a field is missing, unknown, of another type, or refused by a validator of output.py"),
        _code("number_range", "a number fits no column: too large, or not finite"),
        _code("duplicate_key", "a key stands twice in one object"),
        _code("validator_raised", "code of output.py raised an error while it looked at the answer"),
    ),
    prepare=_prepare,
)

"""The vector of an embedding job: finite numbers, as many as the job says."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nightmill.checks.port import NOTHING, AnswerCheck, AnswerRun, AnswerSubject, Code, Finding, Need
from nightmill.domain.failures import FailureClass
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.output.embeddings import VECTOR, dimensions_of


def _prepare_finite(_definition: JobDefinition, _explain: bool) -> AnswerRun:
    return _find_not_finite


def _find_not_finite(subject: AnswerSubject) -> Sequence[Finding]:
    if all(value is not None and math.isfinite(value) for value in subject.vector):
        return NOTHING
    return (Finding("not_finite", "the vector holds something that is no finite number", field=VECTOR),)


def _prepare_dimensions(definition: JobDefinition, _explain: bool) -> AnswerRun | None:
    wanted = dimensions_of(definition.job) if definition.job.provider.embeds else None
    if not wanted:
        return None

    def run(subject: AnswerSubject) -> Sequence[Finding]:
        numbers = len(subject.answer[VECTOR])
        if numbers == wanted:
            return NOTHING
        return (Finding("wrong_dimensions", f"{numbers} numbers instead of {wanted}", field=VECTOR),)

    return run


FINITE = AnswerCheck(
    name="finite",
    codes=(Code("not_finite", FailureClass.OUTPUT, "a vector holds something that is no finite number"),),
    prepare=_prepare_finite,
    needs=Need.VECTOR,
)
DIMENSIONS = AnswerCheck(
    name="dimensions",
    codes=(Code("wrong_dimensions", FailureClass.OUTPUT, "a vector has more or fewer numbers than the job wants"),),
    prepare=_prepare_dimensions,
)

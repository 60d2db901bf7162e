"""What the result lines of one request come to: however many there are, in whatever file and order they stand."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec

from nightmill.domain.classification import classify_unfinished_answer
from nightmill.domain.endings import Ending
from nightmill.domain.failure_rules import CONFLICTING_LINES, NO_CODE
from nightmill.domain.failures import FailureClass
from nightmill.providers.answers import Answer, Failed, Said, Vector


class OneLine(msgspec.Struct, frozen=True, gc=False):
    """The line that counts for a request. `conflicting`: it stands for answers that differ."""

    line: Said
    conflicting: bool = False


def one_of(lines: Sequence[Said]) -> OneLine:
    """An answer counts more than an error, or than one that is empty or broke off. Answers that differ are none,
    however many there are; the same answer with other usage is the same one. The raw files are kept, so that a person
    can look at all of them."""
    if len(lines) == 1:
        return OneLine(lines[0])
    answers = [line for line in lines if _is_answer(line)]
    if len({_answer_of(line) for line in answers}) > 1:
        usage = _with_usage(answers).usage
        differ = Failed(200, CONFLICTING_LINES, "answers that differ", usage)
        return OneLine(differ, conflicting=True)
    if answers:
        return OneLine(_with_usage(answers))
    errors = [line for line in lines if isinstance(line, Failed) and line.code != NO_CODE]
    return OneLine((errors or lines)[0])


def _is_answer(line: Said) -> bool:
    if isinstance(line, Answer):
        unfinished = classify_unfinished_answer(line.ending, line.refusal, line.text, line.instead)
        return unfinished is None or unfinished.kind is not FailureClass.TRANSIENT
    return isinstance(line, Vector)


def _answer_of(line: Said) -> Hashable:
    """What must be alike in two lines for them to be one answer."""
    if isinstance(line, Vector):
        return tuple(line.vector)
    assert isinstance(line, Answer)
    how = Ending.FINISHED if line.ending is Ending.UNKNOWN else line.ending
    return line.text, line.refusal, line.instead, how


def _with_usage(lines: Sequence[Said]) -> Said:
    """The first line with usage that can be believed; the first of all where none has it."""
    return next((line for line in lines if line.usage.uncached is not None), lines[0])

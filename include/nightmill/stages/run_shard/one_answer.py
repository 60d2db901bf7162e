"""What the result lines of one request come to: however many there are, in whatever file and order they stand."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec

from nightmill.domain.failures import CONFLICTING_LINES, NO_CODE, FailureClass, classify_unfinished_answer
from nightmill.domain.finish_reasons import Ending, ending
from nightmill.providers.port import Answer, Embedding, LineError

Told = Answer | Embedding | LineError


class OneLine(msgspec.Struct, frozen=True, gc=False):
    """The line that counts for a request. `conflicting`: it stands for answers that differ."""

    line: Told
    conflicting: bool = False


def one_of(lines: Sequence[Told]) -> OneLine:
    """An answer counts more than an error, or than one that is empty or broke off. Answers that differ are none,
    however many there are; the same answer with other usage is the same one. The raw files are kept, so that a person
    can look at all of them."""
    if len(lines) == 1:
        return OneLine(lines[0])
    answers = [line for line in lines if _is_answer(line)]
    if len({_answer_of(line) for line in answers}) > 1:
        usage = _with_usage(answers).usage
        differ = LineError(lines[0].custom_id, 200, CONFLICTING_LINES, "answers that differ", usage)
        return OneLine(differ, conflicting=True)
    if answers:
        return OneLine(_with_usage(answers))
    errors = [line for line in lines if isinstance(line, LineError) and line.code != NO_CODE]
    return OneLine((errors or lines)[0])


def _is_answer(line: Told) -> bool:
    if isinstance(line, Answer):
        unfinished = classify_unfinished_answer(line.finish_reason, line.refusal, line.text, line.instead)
        return unfinished is None or unfinished.kind is not FailureClass.TRANSIENT
    return isinstance(line, Embedding)


def _answer_of(line: Told) -> Hashable:
    """What must be alike in two lines for them to be one answer."""
    if isinstance(line, Embedding):
        return tuple(line.vector)
    assert isinstance(line, Answer)
    how = ending(line.finish_reason)
    return line.text, line.refusal, line.instead, Ending.FINISHED if how is Ending.UNKNOWN else how


def _with_usage(lines: Sequence[Told]) -> Told:
    """The first line with usage that can be believed; the first of all where none has it."""
    return next((line for line in lines if line.usage.prompt_tokens is not None), lines[0])

"""What a check is: one value that says what an answer, or an input, must be.

A check stands in one list (registry.py). It has a name, the codes of what it can find, and `prepare`: from a job
folder to the function that looks at one answer or one input, or None where the job does not ask for it. So a job pays
nothing for the checks that it does not use.

A check that raises settles the one item that it looked at, with the code `check_raised`.
docs/guides/write_a_check.md shows a whole one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from enum import Flag, StrEnum, auto
from typing import Any, Final

import msgspec

from nightmill.domain.endings import Ending
from nightmill.domain.failures import Action, FailureClass, Instead
from nightmill.domain.outcomes import CitedSpan
from nightmill.jobs.contract import JobDefinition

_WORD = re.compile(r"[a-z][a-z0-9_]*")


class Severity(StrEnum):
    """What a finding means for its item."""

    ERROR = "error"  # refuses it
    NOTE = "note"  # an answer is accepted with the code among its notes; an input is sent, and counted in the log


@dataclass(frozen=True, slots=True)
class Code:
    """What a check can find. `word` is for machines (lower case and `_`) and stays the same for ever; `meaning` is for
    docs/reference/failures.md. `action` overrules what the class says happens to the item: GIVE_UP asks no model
    again, ASK puts an answer in review, EXCLUDE leaves an input out without a dead letter."""

    word: str
    kind: FailureClass
    meaning: str
    action: Action | None = None

    def __post_init__(self) -> None:
        if not _WORD.fullmatch(self.word):
            raise ValueError(f"A check's code is lower-case letters, digits and _, got {self.word!r}.")


class UndeclaredCode(LookupError):
    """A check found something under a code that it does not declare."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found. `code` is one of its check's.

    `message` goes to the ledger and its pages: it never holds text of the document or of the answer. `told` is for the
    model that is asked again, where there is more to say than the message: it may quote, and is never stored or logged.
    `field` is the place, such as `lines.0.amount`. `action` overrules that of the code.
    """

    code: str
    message: str
    field: str = ""
    told: str = attribute(default="", repr=False)
    severity: Severity = Severity.ERROR
    action: Action | None = None


class Need(Flag):
    """What a check of answers looks at, beside the text of the answer and what was read from it."""

    DOCUMENT = auto()  # the item's source columns; only jobs with such a check read them again
    MESSAGE = auto()  # how the message ended: only of an answer that came just now, never of a stored one
    VECTOR = auto()  # a vector as it came: likewise


NO_NEED: Final = Need(0)


class AnswerSubject(msgspec.Struct, gc=False):
    """One answer on its way through the checks. Made once per item: a Struct, ten times as quick to make.

    `answer` is empty until the schema check has read it: checks behind that one can rely on it. `notes` and `citations`
    are what checks add to an accepted answer.
    """

    text: str
    document: Mapping[str, Any]
    ending: Ending = Ending.FINISHED
    refusal: bool = False
    instead: Instead = ""
    vector: Sequence[float | None] = ()
    answer: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    citations: tuple[CitedSpan, ...] = ()


class InputSubject(msgspec.Struct, gc=False):
    """One input on its way through the checks. `values` are the payload columns, `text` the one that
    source.columns.text names. `messages` are the rendered request and `tokens` its size; both are empty for a check
    that looks before the prompt is rendered."""

    values: Mapping[str, Any]
    text: Any
    messages: Sequence[Mapping[str, str]] = ()
    tokens: int = 0


AnswerRun = Callable[[AnswerSubject], Sequence[Finding]]
InputRun = Callable[[InputSubject], Sequence[Finding]]
NOTHING: Final[tuple[Finding, ...]] = ()


@dataclass(frozen=True)
class Check:
    """What checks of answers and of inputs share."""

    name: str
    codes: tuple[Code, ...]

    def code(self, finding: Finding) -> Code:
        """Raises UndeclaredCode."""
        for code in self.codes:
            if code.word == finding.code:
                return code
        raise UndeclaredCode(finding.code)


@dataclass(frozen=True)
class AnswerCheck(Check):
    """A check of answers: of those that came just now, and of stored ones before they are used again.

    `prepare(definition, explain)` is called once per task; `explain`: its findings are told to the model.
    """

    prepare: Callable[[JobDefinition, bool], AnswerRun | None]
    needs: Need = NO_NEED


@dataclass(frozen=True)
class InputCheck(Check):
    """A check of inputs, run while a batch is frozen: nothing is sent for an item that it refuses, and no attempt is
    made. `rendered`: it looks at the request and its tokens; else it runs first, and saves rendering what is refused.
    """

    prepare: Callable[[JobDefinition], InputRun | None]
    rendered: bool = False

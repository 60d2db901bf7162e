"""From what was seen of a provider to the failure behind it, by the table in `failure_rules`."""

from __future__ import annotations

from nightmill.domain.endings import Ending
from nightmill.domain.error_words import stated_status
from nightmill.domain.failure_rules import ENDINGS, NEVER_EXECUTED, NO_CODE, RULES, UNCLEAR_STATUSES, Symptoms
from nightmill.domain.failures import MESSAGE_LIMIT, Failure, FailureClass, Instead

_ALL_RULES = RULES + ENDINGS


def classify(seen: Symptoms) -> Failure | None:
    """The failure behind what was seen, by the first rule that holds; None when nothing failed."""
    for rule in _ALL_RULES:
        if rule.holds(seen):
            told = "" if seen.code == NO_CODE and seen.status else seen.code
            code = rule.code or told or seen.type
            message = rule.message or seen.message
            return Failure(rule.kind, code or f"http_{seen.status}", message[:MESSAGE_LIMIT])
    return None


def classify_line_error(status: int, code: str, message: str, type: str = "") -> Failure:
    """The failure behind an error line. `status` is the line's inner HTTP status, 0 when it carries none."""
    return _certain(
        Symptoms(status=stated_status(status, (code, type), message), code=code, type=type, message=message)
    )


def never_processed(status: int, code: str, message: str, type: str = "") -> bool:
    """Whether an error line says that the provider refused the request before a model worked on it: that is not paid.

    What broke off, timed out or says nothing may have been processed.
    """
    if code in NEVER_EXECUTED:
        return True
    stated = stated_status(status, (code, type), message) or 0
    if 400 <= stated < 500:
        return stated not in UNCLEAR_STATUSES
    kind = classify_line_error(status, code, message, type).kind
    return kind in (FailureClass.INPUT, FailureClass.CAPACITY)


def classify_unfinished_answer(
    ending: Ending, refusal: bool, text: str | None, instead: Instead = ""
) -> Failure | None:
    """The failure of an answer that must not be parsed at all, or None when its text may be read.

    How it ended is looked at first: a truncated text is never repaired, a refusal never parsed.
    """
    if ending is Ending.FINISHED and not refusal and text and text[0] == "{":
        return None  # nearly every answer: no further questions
    empty = not text or not text.strip()
    return classify(Symptoms(refused=refusal, ending=ending, empty=empty, instead=instead))


def lost_line() -> Failure:
    """A request that stands in neither result file of a batch that ended."""
    return _certain(Symptoms(missing=True))


def _certain(seen: Symptoms) -> Failure:
    failure = classify(seen)
    assert failure is not None, "every kind of evidence has a rule"
    return failure

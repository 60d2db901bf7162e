"""One answer through the list of checks. Never raises for anything that a model can write, or a check does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from nightmill.checks import registry
from nightmill.checks.containment import ANSWER_RAISED, raised
from nightmill.checks.port import AnswerCheck, AnswerRun, AnswerSubject, Code, Finding, Need, Severity
from nightmill.domain.endings import Ending
from nightmill.domain.failures import MESSAGE_LIMIT, Failure, Instead
from nightmill.domain.outcomes import Accepted, Verdict
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.output.embeddings import VECTOR

_Prepared = tuple[AnswerCheck, AnswerRun]
_Found = tuple[Code, Finding]


class Checker:
    """Checks the answers of one contract.

    The first check that refuses an answer ends it. With `explain`, those behind it are asked as well, and the message
    of a refused answer is all that they tell the model that is asked again: it can quote, and is neither stored nor
    logged.
    """

    def __init__(
        self, definition: JobDefinition, *, explain: bool = False, checks: Sequence[AnswerCheck] | None = None
    ) -> None:
        listed = registry.ANSWER_CHECKS if checks is None else checks
        prepared = [(check, check.prepare(definition, explain)) for check in listed]
        asked_for = [(check, run) for check, run in prepared if run is not None]
        self._explain = explain
        self._of_messages = [one for one in asked_for if Need.VECTOR not in one[0].needs]
        self._of_vectors = [one for one in asked_for if Need.MESSAGE not in one[0].needs]
        self._of_texts = [one for one in self._of_vectors if Need.VECTOR not in one[0].needs]
        self.needs_payload = any(Need.DOCUMENT in check.needs for check, _ in asked_for)
        """Whether a check reads the document."""

    def check_message(
        self,
        ending: Ending,
        refusal: bool,
        text: str | None,
        payload: Mapping[str, Any],
        instead: Instead = "",
    ) -> Verdict:
        """A model's message. `payload` holds the item's source columns (empty when no check needs them); `instead` is
        what it holds in place of text."""
        return self._judge(self._of_messages, AnswerSubject(text or "", payload, ending, refusal, instead))

    def check_vector(self, vector: Sequence[float | None], payload: Mapping[str, Any] | None = None) -> Verdict:
        """A model's vector."""
        text = orjson.dumps({VECTOR: vector}).decode()
        return self._judge(self._of_vectors, AnswerSubject(text, payload or {}, vector=vector))

    def check_text(self, text: str, payload: Mapping[str, Any]) -> Verdict:
        """A stored answer's text."""
        return self._judge(self._of_texts, AnswerSubject(text, payload))

    def _judge(self, checks: Sequence[_Prepared], subject: AnswerSubject) -> Verdict:
        refused: list[_Found] = []
        for check, run in checks:
            try:
                findings = run(subject)
                if findings:
                    refused += _refusing(check, findings, subject)
            except BaseException as fault:
                refused.append((ANSWER_RAISED, raised(check, fault)))
            if refused and not (self._explain and subject.answer):
                break
        if refused:
            return self._failure(refused)
        return Accepted(subject.answer, subject.notes, subject.citations)

    def _failure(self, refused: Sequence[_Found]) -> Failure:
        """The first one gives the code; what else has that code is named with it."""
        code, first = refused[0]
        if self._explain:
            message = "; ".join(finding.told or finding.message for _, finding in refused)
        else:
            message = "; ".join(finding.message for _, finding in refused if finding.code == first.code)[:MESSAGE_LIMIT]
        return Failure(code.kind, code.word, message, first.action or code.action)


def _refusing(check: AnswerCheck, findings: Sequence[Finding], subject: AnswerSubject) -> list[_Found]:
    """The findings that refuse the answer, each with its code. The others become notes."""
    subject.notes += tuple(check.code(one).word for one in findings if one.severity is Severity.NOTE)
    return [(check.code(finding), finding) for finding in findings if finding.severity is Severity.ERROR]

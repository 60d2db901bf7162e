"""One input through the list of checks, before anything is sent for it. Never raises for anything a check does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from nightmill.checks import registry
from nightmill.checks.containment import INPUT_RAISED, raised
from nightmill.checks.port import Code, Finding, InputCheck, InputRun, InputSubject, Severity
from nightmill.domain.failures import MESSAGE_LIMIT, Action
from nightmill.domain.outcomes import NeverSent
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.tokens import TokenCounter

_Prepared = tuple[InputCheck, InputRun]


class InputChecker:
    """Measures the inputs of one contract, and says which of them are never sent. `noted` counts the findings that
    refuse nothing, by code."""

    def __init__(
        self, definition: JobDefinition, counter: TokenCounter, checks: Sequence[InputCheck] | None = None
    ) -> None:
        self._text_column = definition.job.source.columns.text
        self._prompt = definition.prompt
        self._counter = counter
        prepared = [(one, one.prepare(definition)) for one in (registry.INPUT_CHECKS if checks is None else checks)]
        asked_for = [(check, run) for check, run in prepared if run is not None]
        self._first = [one for one in asked_for if not one[0].rendered]
        self._rendered = [one for one in asked_for if one[0].rendered]
        self.noted: Counter[str] = Counter()

    @property
    def noted_in_words(self) -> str:
        """`3 pii_email, 1 pii_phone`."""
        return ", ".join(f"{count} {code}" for code, count in sorted(self.noted.items()))

    def measure(self, values: Mapping[str, Any]) -> tuple[int, NeverSent | None]:
        """Prompt tokens of an item's request, and why it is never sent (or None). Tokens are 0 where it is refused
        before it is rendered. Raises SourceError where the prompt cannot be filled in."""
        subject = InputSubject(values, values[self._text_column])
        refused = self._judge(self._first, subject)
        if refused is not None:
            return 0, refused
        subject.messages = self._prompt.render(values)
        subject.tokens = self._counter.count_messages(subject.messages)
        return subject.tokens, self._judge(self._rendered, subject)

    def _judge(self, checks: Sequence[_Prepared], subject: InputSubject) -> NeverSent | None:
        for check, run in checks:
            try:
                found = run(subject)
                for finding in found:
                    if finding.severity is Severity.ERROR:
                        return _never_sent(check.code(finding), finding)
                    self.noted[check.code(finding).word] += 1
            except BaseException as fault:
                return _never_sent(INPUT_RAISED, raised(check, fault))
        return None


def judged_anew() -> list[str]:
    """`class/code` of what checks of inputs can find. Each freeze judges that anew, so an earlier dead letter with it
    says nothing about today."""
    codes = [code for check in registry.INPUT_CHECKS for code in check.codes]
    return [f"{code.kind}/{code.word}" for code in (*codes, INPUT_RAISED)]


def _never_sent(code: Code, finding: Finding) -> NeverSent:
    action = finding.action or code.action or code.kind.action
    message = None if action is Action.EXCLUDE else finding.message[:MESSAGE_LIMIT]
    return NeverSent(code.word, str(code.kind), message)

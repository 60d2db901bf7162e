"""The quotations of one answer against its document, by the job's citation rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from nightmill.checks.citations import Citation, find_citation, refusal
from nightmill.checks.port import NOTHING, AnswerCheck, AnswerRun, AnswerSubject, Code, Finding, Need
from nightmill.domain.failures import FailureClass
from nightmill.domain.outcomes import CitedSpan
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.prompt.prompt import written
from nightmill.jobs.settings.job import CitationRule

MOST_QUOTES: Final = 1_000  # of one answer
MOST_WORK: Final = 15_000_000  # quotations x characters of their document: well under a second, whatever the texts are
_EXACT_WORK: Final = 0.1  # of that, where a quotation stands word for word
_EXPLAINED: Final = 5  # refused quotations that the model is told of


class CitationRules:
    """Finds the quotations that rules ask for. `explain`: the model is told what the document reads."""

    def __init__(self, rules: Sequence[CitationRule], *, explain: bool) -> None:
        self._rules = rules
        self._explain = explain

    def run(self, subject: AnswerSubject) -> Sequence[Finding]:
        """Note where each quotation stands, or say why the answer is refused."""
        spans, findings = self.find(subject.answer, subject.document)
        if not findings:
            subject.citations += tuple(spans)
        return findings

    def find(
        self, answer: Mapping[str, Any], payload: Mapping[str, Any]
    ) -> tuple[Sequence[CitedSpan], Sequence[Finding]]:
        """Where quotations stand, and which do not stand in the document, or are more than can be checked. Work is
        counted, not timed: the same answer always ends the same."""
        spans: list[CitedSpan] = []
        refused: list[Finding] = []
        work = 0.0
        for number, (rule, name, quote) in enumerate(_quotes(self._rules, answer)):
            source = written(payload.get(rule.source) or "")
            work += len(source) * _EXACT_WORK
            if number >= MOST_QUOTES or work > MOST_WORK:
                return spans, (Finding("too_many_citations", _too_many(rule, number), field=rule.quote),)
            found = find_citation(quote, source, rule.min_score) if isinstance(quote, str) else None
            if found is None:
                refused.append(self._not_found(rule, name, quote, source))
                if not self._explain or len(refused) == _EXPLAINED:
                    break
            else:
                spans.append(_span(rule, found))
            if found is None or found.method != "exact":
                work += len(source)
        return spans, refused or NOTHING

    def _not_found(self, rule: CitationRule, name: str, quote: Any, source: str) -> Finding:
        message = f"{name} is not in the document"
        told = f"{message}; {refusal(quote, source)}" if self._explain and isinstance(quote, str) else ""
        return Finding("citation_missing", message, field=rule.quote, told=told)


def _quotes(rules: Sequence[CitationRule], answer: Mapping[str, Any]) -> Iterator[tuple[CitationRule, str, Any]]:
    """Each quotation with its name in the model's own terms."""
    for rule in rules:
        quotes = answer.get(rule.quote)
        if isinstance(quotes, list):
            for number, quote in enumerate(quotes, 1):
                yield rule, f"quote {number} of `{rule.quote}`", quote
        else:
            yield rule, f"`{rule.quote}`", quotes


def _too_many(rule: CitationRule, checked: int) -> str:
    return f"`{rule.quote}` has more quotations than can be checked against this document: give the {checked} best"


def _span(rule: CitationRule, found: Citation) -> CitedSpan:
    return CitedSpan(rule.quote, rule.source, found.start, found.end, found.method, found.score, found.differing)


def _prepare(definition: JobDefinition, explain: bool) -> AnswerRun | None:
    rules = definition.job.validation.citations
    return CitationRules(rules, explain=explain).run if rules else None


CITATIONS = AnswerCheck(
    name="citations",
    codes=(
        Code("citation_missing", FailureClass.OUTPUT, "a quotation does not stand in the document"),
        Code("too_many_citations", FailureClass.OUTPUT, "an answer has more quotations than can be checked"),
    ),
    prepare=_prepare,
    needs=Need.DOCUMENT,
)

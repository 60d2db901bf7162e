"""One answer against its contract: finish reason, schema, citations, dimensions of a vector. Never raises for anything
a model can write."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from nightmill.domain.contract import JobDefinition
from nightmill.domain.embeddings import VECTOR, dimensions_of
from nightmill.domain.failures import classify_unfinished_answer, rejected
from nightmill.domain.job import CitationRule
from nightmill.domain.outcomes import Accepted, CitedSpan, Verdict
from nightmill.domain.prompt import written
from nightmill.validators.citations import find_citation
from nightmill.validators.schema import AnswerReader, Invalid


class Checker:
    """Checks the answers of one contract."""

    def __init__(self, definition: JobDefinition) -> None:
        self._reader = AnswerReader(definition.output)
        self._rules = definition.job.validation.citations
        self._dimensions = dimensions_of(definition.job) if definition.job.provider.embeds else None

    @property
    def needs_payload(self) -> bool:
        """Whether a check reads the document."""
        return bool(self._rules)

    def check_message(
        self, finish_reason: str | None, refusal: bool, text: str | None, payload: Mapping[str, Any]
    ) -> Verdict:
        """A model's message. `payload` holds the item's source columns (empty when no rule needs them)."""
        unfinished = classify_unfinished_answer(finish_reason, refusal, text)
        if unfinished is not None:
            return unfinished
        return self.check_text(text or "", payload)

    def check_vector(self, vector: Sequence[float | None]) -> Verdict:
        """A model's vector."""
        if not all(value is not None and math.isfinite(value) for value in vector):
            return rejected("not_finite", "the vector holds something that is no finite number")
        return self.check_text(orjson.dumps({VECTOR: vector}).decode(), {})

    def check_text(self, text: str, payload: Mapping[str, Any]) -> Verdict:
        """An answer's text, fresh or stored."""
        read = self._reader.read(text)
        if isinstance(read, Invalid):
            return rejected(read.code, "; ".join(read.findings) or read.code)
        if self._dimensions and len(read.answer[VECTOR]) != self._dimensions:
            return rejected("wrong_dimensions", f"{len(read.answer[VECTOR])} numbers instead of {self._dimensions}")
        return self._cite(read.answer, read.notes, payload)

    def _cite(self, answer: dict[str, Any], notes: tuple[str, ...], payload: Mapping[str, Any]) -> Verdict:
        spans = []
        for rule in self._rules:
            quotes = answer.get(rule.quote)
            for quote in quotes if isinstance(quotes, list) else [quotes]:
                span = _locate(rule, quote, payload)
                if span is None:
                    return rejected("citation_missing", f"{rule.quote} is not a span of {rule.source}")
                spans.append(span)
        return Accepted(answer, notes, tuple(spans))


def _locate(rule: CitationRule, quote: Any, payload: Mapping[str, Any]) -> CitedSpan | None:
    if not isinstance(quote, str):
        return None
    found = find_citation(quote, written(payload.get(rule.source) or ""), rule.min_score)
    if found is None:
        return None
    return CitedSpan(rule.quote, rule.source, found.start, found.end, found.method, found.score)

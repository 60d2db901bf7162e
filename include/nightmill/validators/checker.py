"""One answer against its contract: finish reason, schema, citations, dimensions of a vector. Never raises for anything
a model can write."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from nightmill.domain.contract import JobDefinition
from nightmill.domain.embeddings import VECTOR, dimensions_of
from nightmill.domain.failures import Failure, Instead, classify_unfinished_answer, rejected
from nightmill.domain.outcomes import Accepted, Verdict
from nightmill.validators.citation_rules import CitationRules
from nightmill.validators.schema import AnswerReader, Invalid


class Checker:
    """Checks the answers of one contract.

    With `explain`, the message of a refused answer says what the document reads instead: it is for the model that is
    asked again, and is neither stored nor logged.
    """

    def __init__(self, definition: JobDefinition, *, explain: bool = False) -> None:
        self._reader = AnswerReader(definition.output)
        self._citations = CitationRules(definition.job.validation.citations, explain=explain)
        self._dimensions = dimensions_of(definition.job) if definition.job.provider.embeds else None

    @property
    def needs_payload(self) -> bool:
        """Whether a check reads the document."""
        return bool(self._citations.rules)

    def check_message(
        self,
        finish_reason: str | None,
        refusal: bool,
        text: str | None,
        payload: Mapping[str, Any],
        instead: Instead = "",
    ) -> Verdict:
        """A model's message. `payload` holds the item's source columns (empty when no rule needs them); `instead` is
        what it holds in place of text."""
        unfinished = classify_unfinished_answer(finish_reason, refusal, text, instead)
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
        found = self._citations.check(read.answer, payload)
        if isinstance(found, Failure):
            return found
        return Accepted(read.answer, read.notes, found)

"""One answer against its contract: finish reason, schema, citations, dimensions of a vector. Never raises for anything
a model can write."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from nightmill.checks.citation_rules import CitationRules
from nightmill.domain.endings import Ending
from nightmill.domain.failures import Failure, Instead, classify_unfinished_answer, rejected
from nightmill.domain.outcomes import Accepted, Verdict
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.output.answer_schema import AnswerReader, Invalid
from nightmill.jobs.output.embeddings import VECTOR, dimensions_of
from nightmill.jobs.rules.repair import is_truncation


class Checker:
    """Checks the answers of one contract.

    With `explain`, the message of a refused answer says what the document reads instead, and what the job's own
    validators say: it is for the model that is asked again, and is neither stored nor logged.
    """

    def __init__(self, definition: JobDefinition, *, explain: bool = False) -> None:
        zone = definition.job.validation.time_zone
        self._reader = AnswerReader(definition.output, zone=zone, explain=explain)
        self._reserve = definition.job.provider.limited_by
        self._citations = CitationRules(definition.job.validation.citations, explain=explain)
        self._dimensions = dimensions_of(definition.job) if definition.job.provider.embeds else None

    @property
    def needs_payload(self) -> bool:
        """Whether a check reads the document."""
        return bool(self._citations.rules)

    def check_message(
        self,
        ending: Ending,
        refusal: bool,
        text: str | None,
        payload: Mapping[str, Any],
        instead: Instead = "",
    ) -> Verdict:
        """A model's message. `payload` holds the item's source columns (empty when no rule needs them); `instead` is
        what it holds in place of text."""
        unfinished = classify_unfinished_answer(ending, refusal, text, instead)
        if unfinished is not None:
            return self._advised(unfinished) if is_truncation(unfinished.kind, unfinished.code) else unfinished
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
            failure = rejected(read.code, read.message)
            return replace(failure, message=read.told) if read.told else failure
        if self._dimensions and len(read.answer[VECTOR]) != self._dimensions:
            return rejected("wrong_dimensions", f"{len(read.answer[VECTOR])} numbers instead of {self._dimensions}")
        found = self._citations.check(read.answer, payload)
        if isinstance(found, Failure):
            return found
        return Accepted(read.answer, read.notes, found)

    def _advised(self, truncated: Failure) -> Failure:
        """With the parameter that this job limits its answers by."""
        if self._reserve is None:
            advice = "job.yaml sets no limit, so the model's own one cut it: ask for shorter answers"
        else:
            advice = f"raise {self._reserve}, or repair.max_output_tokens_cap"
        return replace(truncated, message=f"the answer ended at the token limit; {advice}")

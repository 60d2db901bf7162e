"""Replays known answers: for tests that need a certain answer to a certain document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict

from dev.practice_provider.books import body_sha256
from dev.practice_provider.models.port import ModelAnswer
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.tokens import message_text
from nightmill.domain.errors import ConfigError


class GoldRecord(BaseModel):
    """`match`: the sha256 of the messages (see books.body_sha256), or a text that occurs in them. `answer`: an
    object, sent as JSON, or a string, sent as it is; null with `refusal` for a refused request."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    match: str
    answer: dict[str, Any] | str | None = None
    refusal: str | None = None
    finish_reason: str = "stop"


class GoldModel:
    """Of several records that match, the one with the longest `match` answers, so that doc-12 is not taken for doc-1.

    Raises ConfigError for a replay file that cannot be read.
    """

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as source:
                records = [GoldRecord.model_validate_json(line) for line in source if line.strip()]
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"The replay file {path} cannot be read: {type(error).__name__}.",
                'Give it lines such as {"match": "doc-1", "answer": {...}}.',
            ) from error
        self._exact = {record.match: record for record in records}
        self._by_length = sorted(records, key=lambda record: -len(record.match))

    def answer(self, body: Mapping[str, Any]) -> ModelAnswer | Refusal:
        record = self._exact.get(body_sha256(body)) or self._within(body)
        if record is None:
            return Refusal(400, "No gold record matches this request.", code="gold_not_found", param="messages")
        text = record.answer if not isinstance(record.answer, dict) else orjson.dumps(record.answer).decode()
        return ModelAnswer(text, record.finish_reason, record.refusal)

    def _within(self, body: Mapping[str, Any]) -> GoldRecord | None:
        text = "\n".join(message_text(message) for message in body["messages"])
        return next((record for record in self._by_length if record.match in text), None)

"""The demo's model: reads a licence text by rules and answers in the demo's schema."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import orjson

from dev.practice_provider.models.port import ModelAnswer
from dev.practice_provider.tokens import message_text


class LicenceReader:
    def __init__(self) -> None:
        # Loaded at first use: the rules are needed by nobody who does not ask for this model.
        self._read = import_module("dev.practice_provider.models.licence").read_licence

    def answer(self, body: Mapping[str, Any]) -> ModelAnswer:
        text = "\n".join(message_text(message) for message in body["messages"])
        return ModelAnswer(orjson.dumps(self._read(text)).decode())

"""The model of the requirement lines job: reads one requirement by rules and answers in the job's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from dev.practice_provider.models.licence import find_document
from dev.practice_provider.models.port import ModelAnswer
from dev.practice_provider.models.requirement import read_requirement
from dev.practice_provider.tokens import message_text


class RequirementReader:
    """Gets what any model would get, the messages, and reads the document in them."""

    def answer(self, body: Mapping[str, Any]) -> ModelAnswer:
        text = "\n".join(message_text(message) for message in body["messages"])
        return ModelAnswer(orjson.dumps(read_requirement(find_document(text))).decode())

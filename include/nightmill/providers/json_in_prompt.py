"""The form of an answer, asked for in the prompt where the provider takes no schema. Our own check stays the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_ASK = (
    "Answer with one JSON object and nothing else: no code fence, no words around it. It must match this JSON schema:\n"
)


def words_for(schema: Mapping[str, Any]) -> str:
    """What is added to a request so that its answer matches the schema."""
    return _ASK + json.dumps(dict(schema), ensure_ascii=False)

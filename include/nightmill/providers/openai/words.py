"""What a provider says about a call that it refused, as far as it can be shown.

Its message can quote the key or a piece of a document. It is shown only where it speaks of an argument of a call that
carries no document, and where nobody can have pasted a key into it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import openai

from nightmill.providers.cleaning import prose, word
from nightmill.providers.connection import ProviderConnection

_OF_DOCUMENTS = ("file", "input", "messages", "prompt", "body", "data")  # parameters that carry, or lead to, documents
_MOST = 300


def refusal_words(error: openai.APIStatusError, connection: ProviderConnection) -> str:
    """`, completion_window: Invalid value: '24'`: the parameter and what is wrong with it; empty where it says none."""
    parameter, message = _told(error.body)
    if parameter is None or error.status_code in (401, 403):
        return ""
    spoken_of = parameter.lower().replace("[", ".").split(".")[0]
    if message is None or spoken_of.startswith(_OF_DOCUMENTS) or connection.api_key in message:
        return f", {parameter}"
    return f", {parameter}: {message.rstrip('.')}"


def refused_parameter(error: openai.APIStatusError) -> str | None:
    """The argument that it speaks of."""
    return _told(error.body)[0]


def _told(body: object) -> tuple[str | None, str | None]:
    """Parameter and message: of OpenAI's error object, or of the list that FastAPI's validation answers with."""
    if not isinstance(body, Mapping):
        return None, None
    detail: Any = body.get("detail")
    if isinstance(detail, list) and detail and isinstance(detail[0], Mapping):
        place = detail[0].get("loc")
        names = [str(part) for part in place if part != "body"] if isinstance(place, list) else []
        return word(".".join(names)), prose(detail[0].get("msg"), _MOST)
    return word(body.get("param")), prose(body.get("message"), _MOST)

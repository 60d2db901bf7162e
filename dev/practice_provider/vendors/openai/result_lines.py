"""Lines of result files, as OpenAI's API reference describes them (object "batch request output")."""

from __future__ import annotations

from typing import Any

from dev.practice_provider.json_lines import encoded


def response_line(request_id: str, custom_id: str, status: int, body: dict[str, Any] | str) -> bytes:
    """A line with a response. `body` is text only where a server writes it so against the documentation."""
    response = {"status_code": status, "request_id": request_id.replace("batch_req_", "req_"), "body": body}
    return encoded({"id": request_id, "custom_id": custom_id, "response": response, "error": None})


def unanswered_line(request_id: str, custom_id: str, code: str | None, message: str) -> bytes:
    """A line without a response: the request was not executed, or nobody knows what came of it."""
    error = {"code": code, "message": message}
    return encoded({"id": request_id, "custom_id": custom_id, "response": None, "error": error})

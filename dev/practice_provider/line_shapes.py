"""The odd ways in which servers write an error line, beside the documented one."""

from __future__ import annotations

import json
from typing import Any, Literal, get_args

from dev.practice_provider.refusal import Refusal
from dev.practice_provider.result_lines import encoded

Shape = Literal[
    "documented",  # response.status_code and an error object in the body
    "in_text",  # no response; the status stands in the error's message only
    "as_text",  # the status is a text of digits
    "in_words",  # the status is "HTTP 503"
    "minus_one",  # the status is -1, the error says what it is
    "no_status",  # a response without a status
    "sub_code",  # the status is the real one times ten
    "error_is_text",  # the error is a text
    "nested",  # the error object lies in an error object, and its code is the status
    "no_code",  # the error has a type and no code
]
SHAPES: tuple[Shape, ...] = get_args(Shape)


def shaped_line(shape: Shape, request_id: str, custom_id: str, refusal: Refusal) -> bytes:
    """The line of a refused request."""
    status, error = refusal.status, refusal.body()["error"]
    said = f"Error code: {status} - {refusal.message}"
    documented: dict[str, Any] = {"status_code": status, "request_id": request_id, "body": {"error": error}}
    response: dict[str, Any] | None = documented
    beside: Any = None
    match shape:
        case "in_text":
            response, beside = None, {"code": "request_failed", "message": said}
        case "as_text":
            response = {**documented, "status_code": str(status)}
        case "in_words":
            response = {"status_code": f"HTTP {status}", "body": ""}
        case "minus_one":
            response = {**documented, "status_code": -1}
        case "no_status":
            response = {"body": {"error": error}}
        case "sub_code":
            response = {**documented, "status_code": status * 10}
        case "error_is_text":
            response, beside = None, said
        case "nested":
            inner = {"error": {"message": refusal.message, "code": status}}
            response, beside = {"status_code": 0, "body": json.dumps(inner)}, None
        case "no_code":
            response, beside = None, {"type": refusal.type, "message": refusal.message}
    return encoded({"id": request_id, "custom_id": custom_id, "response": response, "error": beside})

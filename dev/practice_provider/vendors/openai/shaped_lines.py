"""Error lines as servers write them that are nearly OpenAI's: one for each of `line_shapes.SHAPES`."""

from __future__ import annotations

import json
from typing import Any

from dev.practice_provider.json_lines import encoded
from dev.practice_provider.line_shapes import Shape
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.vendors.openai.face import error_body


def shaped_line(shape: Shape, request_id: str, custom_id: str, refusal: Refusal) -> bytes:
    """The line of a refused request."""
    status, error = refusal.status, error_body(refusal)["error"]
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

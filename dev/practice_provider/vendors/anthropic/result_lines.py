"""Lines of a batch's results: {"custom_id", "result"} with a result of the type succeeded, errored, canceled or
expired.

An error lies one level deeper than in a call's answer: result.error is the whole error body.
"""

from __future__ import annotations

from typing import Any

from dev.practice_provider.json_lines import encoded
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.vendors.anthropic.face import error_type


def result_line(custom_id: str, result: dict[str, Any]) -> bytes:
    return encoded({"custom_id": custom_id, "result": result})


def succeeded_line(custom_id: str, message: Any, **more: Any) -> bytes:
    return result_line(custom_id, {"type": "succeeded", "message": message, **more})


def errored_line(custom_id: str, refusal: Refusal, request_id: str) -> bytes:
    error = {"type": error_type(refusal), "message": refusal.message}
    return result_line(
        custom_id, {"type": "errored", "error": {"type": "error", "error": error, "request_id": request_id}}
    )


def flat_errored_line(custom_id: str, refusal: Refusal) -> bytes:
    """As many examples have it, against the documentation: the error without the body around it."""
    error = {"type": error_type(refusal), "message": refusal.message}
    return result_line(custom_id, {"type": "errored", "error": error})


def unfinished_line(custom_id: str, kind: str) -> bytes:
    return result_line(custom_id, {"type": kind})

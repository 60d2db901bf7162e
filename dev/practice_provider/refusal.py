"""The provider's answer when it will not do something: one value, rendered as OpenAI's error body.

Source of the shape: the API reference's error object ({"error": {message, type, param, code}}).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused call, or a refused line of a batch. `status` is the HTTP status."""

    status: int
    message: str
    code: str | None = None
    param: str | None = None
    type: str = "invalid_request_error"

    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


def model_not_found(model: object) -> Refusal:
    message = f"The model `{model}` does not exist or you do not have access to it."
    return Refusal(404, message, code="model_not_found", param="model")


def missing_parameter(param: str) -> Refusal:
    return Refusal(400, f"Missing required parameter: '{param}'.", code="missing_required_parameter", param=param)

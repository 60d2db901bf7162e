"""The provider's answer when it will not do something: one value, which each vendor puts into its own words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused call, or a refused line of a batch. `status` is the HTTP status; 0 where a line has no response.

    `retry_after_s` becomes the header retry-after of a call.
    """

    status: int
    message: str
    code: str | None = None
    param: str | None = None
    type: str = "invalid_request_error"
    retry_after_s: int | None = None


def model_not_found(model: object) -> Refusal:
    message = f"The model `{model}` does not exist or you do not have access to it."
    return Refusal(404, message, code="model_not_found", param="model")


def missing_parameter(param: str) -> Refusal:
    return Refusal(400, f"Missing required parameter: '{param}'.", code="missing_required_parameter", param=param)

"""How OpenAI checks a call's key and words its errors.

Source of the error's shape: the API reference's error object ({"error": {message, type, param, code}}).
"""

from __future__ import annotations

import secrets
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dev.practice_provider.refusal import Refusal
from dev.practice_provider.routes.context import json_response


def error_body(refusal: Refusal) -> dict[str, Any]:
    error = {"message": refusal.message, "type": refusal.type, "param": refusal.param, "code": refusal.code}
    return {"error": error}


class OpenAIFace:
    def __init__(self, api_key: str | None) -> None:
        self._api_key = api_key

    def recognises(self, _request: Request) -> bool:
        """Calls have no mark of their own: any call may be meant for OpenAI."""
        return True

    def check(self, request: Request) -> Refusal | None:
        if self._api_key is None:
            return None
        given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if not given:
            return Refusal(401, "You didn't provide an API key.")
        if not secrets.compare_digest(given.encode(), self._api_key.encode()):
            return Refusal(401, "Incorrect API key provided.", code="invalid_api_key")
        return None

    def error(self, refusal: Refusal) -> Response:
        return json_response(error_body(refusal), refusal.status)

    def sign(self, _request: Request, response: Response) -> None:
        response.headers.setdefault("x-request-id", f"req_{secrets.token_hex(12)}")

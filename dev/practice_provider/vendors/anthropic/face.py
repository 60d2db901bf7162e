"""How Anthropic checks a call's headers and words its errors.

Source: the API reference, "Errors" (types and their statuses, {"type": "error", "error": {...}, "request_id"}) and
"Rate limits" (error.details.error_code); the anthropic SDK for the header anthropic-workspace-id.
"""

from __future__ import annotations

import secrets
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dev.practice_provider.refusal import Refusal
from dev.practice_provider.routes.context import json_response
from dev.practice_provider.settings import AnthropicSettings

WORKSPACE = "anthropic-workspace-id"
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_KNOWN = frozenset(_TYPES.values()) | {"api_error"}


def error_type(refusal: Refusal) -> str:
    """The type that the refusal names, if it is one of Anthropic's; else the one that goes with its status."""
    named = refusal.type
    if named in _KNOWN and not (named == "invalid_request_error" and refusal.status in _TYPES):
        return named
    return _TYPES.get(refusal.status, "invalid_request_error" if 400 <= refusal.status < 500 else "api_error")


def error_body(refusal: Refusal, request_id: str) -> dict[str, Any]:
    error: dict[str, Any] = {"type": error_type(refusal), "message": refusal.message}
    if refusal.code is not None:
        error["details"] = {"error_code": refusal.code}
    return {"type": "error", "error": error, "request_id": request_id}


class AnthropicFace:
    """A key that is not among the settings' `workspaces` belongs to the settings' `workspace`."""

    def __init__(self, api_key: str | None, settings: AnthropicSettings) -> None:
        self._api_key = api_key
        self._settings = settings

    def recognises(self, request: Request) -> bool:
        return "anthropic-version" in request.headers

    def check(self, request: Request) -> Refusal | None:
        given = _key(request)
        if self._api_key is not None and not self._is_key(given):
            return Refusal(401, "invalid x-api-key" if given else "x-api-key header is required")
        if "anthropic-version" not in request.headers:
            return Refusal(400, "anthropic-version: header is required")
        seen, wanted = self._seen(given), request.headers.get(WORKSPACE)
        if wanted is not None and wanted not in seen:
            return Refusal(403, f"This API key does not belong to the workspace {wanted}.")
        if wanted is None and len(seen) > 1:
            return Refusal(400, f"{WORKSPACE}: header is required for a key of several workspaces")
        return None

    def workspace(self, request: Request) -> str:
        """Where a checked call takes place."""
        return request.headers.get(WORKSPACE) or self._seen(_key(request))[0]

    def error(self, refusal: Refusal) -> Response:
        request_id = new_request_id()
        return json_response(error_body(refusal, request_id), refusal.status, {"request-id": request_id})

    def sign(self, request: Request, response: Response) -> None:
        response.headers.setdefault("request-id", new_request_id())
        if response.status_code not in (401, 403):
            response.headers[WORKSPACE] = self.workspace(request)

    def _seen(self, key: str) -> tuple[str, ...]:
        return self._settings.workspaces.get(key) or (self._settings.workspace,)

    def _is_key(self, given: str) -> bool:
        known = (self._api_key or "", *self._settings.workspaces)
        return any(secrets.compare_digest(given.encode(), one.encode()) for one in known)


def _key(request: Request) -> str:
    """Of the header x-api-key, or the bearer token that the SDK sends in its place since 2.14."""
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    return request.headers.get("x-api-key") or bearer


def new_request_id() -> str:
    return f"req_{secrets.token_hex(12)}"

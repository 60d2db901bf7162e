"""Builds the `anthropic` clients so that nothing but the connection decides whose account is charged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx2

from nightmill.providers.connection import ProviderConnection
from nightmill.providers.http_guard import (
    Raises,
    RedirectedError,
    TooLargeError,
    UnpackingError,
    async_hooks,
    hooks,
    settings,
)

WORKSPACE = "anthropic-workspace-id"
_FOREIGN = (WORKSPACE, "anthropic-user-profile-id", "x-api-key")  # what ANTHROPIC_CUSTOM_HEADERS could bring along


class _TooLarge(TooLargeError, anthropic.AnthropicError):
    pass


class _Unpacking(UnpackingError, anthropic.AnthropicError):
    pass


class _Redirected(RedirectedError, anthropic.AnthropicError):
    pass


_RAISES = Raises(_TooLarge, _Unpacking, _Redirected)


@dataclass(frozen=True, slots=True)
class Clients:
    """The SDK's client, the same for calls that must be sent once, and their HTTP client, which also streams results:
    the SDK's own reading of them asks the address that the batch names, and takes a result of a new type for an
    answer."""

    sdk: anthropic.Anthropic
    once: anthropic.Anthropic
    http: httpx2.Client

    def close(self) -> None:
        """Release connections."""
        self.sdk.close()


def open_clients(connection: ProviderConnection, max_retries: int) -> Clients:
    """Synchronous clients with one connection pool."""
    url = base_url(connection)
    events = {"request": [_signer(connection)], **hooks(connection, _RAISES)}
    http = anthropic.DefaultHttpxClient(**settings(connection, httpx2.URL(url)), event_hooks=events)
    sdk = anthropic.Anthropic(
        api_key=connection.api_key,
        base_url=url,
        timeout=connection.timeout_s,
        max_retries=max_retries,
        http_client=http,
    )
    return Clients(sdk, sdk.with_options(max_retries=0), http)


def open_async_client(connection: ProviderConnection, max_retries: int) -> anthropic.AsyncAnthropic:
    """The asynchronous twin of the SDK's client."""
    url = base_url(connection)
    sign = _signer(connection)

    async def sign_later(request: httpx2.Request) -> None:
        sign(request)

    events: dict[str, list[Any]] = {"request": [sign_later], **async_hooks(connection, _RAISES)}
    return anthropic.AsyncAnthropic(
        api_key=connection.api_key,
        base_url=url,
        timeout=connection.timeout_s,
        max_retries=max_retries,
        http_client=anthropic.DefaultAsyncHttpxClient(**settings(connection, httpx2.URL(url)), event_hooks=events),
    )


def base_url(connection: ProviderConnection) -> str:
    """The address as the SDK wants it: it writes /v1 itself."""
    return connection.base_url.rstrip("/").removesuffix("/v1")


def workspace_of(connection: ProviderConnection) -> str | None:
    """The workspace that the connection names, for a key that sees several of them."""
    return connection.scopes.get("workspace")


def _signer(connection: ProviderConnection) -> Callable[[httpx2.Request], None]:
    """The SDK reads headers from the environment too: on the way out, the connection's own stand in their place."""
    workspace = workspace_of(connection)

    def sign(request: httpx2.Request) -> None:
        for name in _FOREIGN:
            request.headers.pop(name, None)
        request.headers["authorization"] = f"Bearer {connection.api_key}"
        request.headers["x-api-key"] = connection.api_key
        if workspace is not None:
            request.headers[WORKSPACE] = workspace

    return sign

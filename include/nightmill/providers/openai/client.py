"""Builds the `openai` clients so that nothing but the connection decides whose account is charged."""

from __future__ import annotations

import httpx2
import openai

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


class _TooLarge(TooLargeError, openai.OpenAIError):
    pass


class _Unpacking(UnpackingError, openai.OpenAIError):
    pass


class _Redirected(RedirectedError, openai.OpenAIError):
    pass


_RAISES = Raises(_TooLarge, _Unpacking, _Redirected)


def open_client(connection: ProviderConnection, max_retries: int) -> openai.OpenAI:
    """A synchronous client with its own connection pool."""
    shared = settings(connection, httpx2.URL(connection.base_url))
    client = openai.OpenAI(
        api_key=connection.api_key,
        base_url=connection.base_url,
        timeout=connection.timeout_s,
        max_retries=max_retries,
        http_client=openai.DefaultHttpxClient(**shared, event_hooks=hooks(connection, _RAISES)),
    )
    # The SDK fills missing ones from OPENAI_ORG_ID and OPENAI_PROJECT_ID; batches would then land elsewhere unseen.
    client.organization, client.project = connection.scopes.get("organization"), connection.scopes.get("project")
    return client


def without_retries(client: openai.OpenAI) -> openai.OpenAI:
    """The same client for calls that must be sent once: it shares the connection pool."""
    once = client.with_options(max_retries=0)
    once.organization, once.project = client.organization, client.project
    return once


def open_async_client(connection: ProviderConnection, max_retries: int) -> openai.AsyncOpenAI:
    """The asynchronous twin of `open_client`."""
    shared = settings(connection, httpx2.URL(connection.base_url))
    client = openai.AsyncOpenAI(
        api_key=connection.api_key,
        base_url=connection.base_url,
        timeout=connection.timeout_s,
        max_retries=max_retries,
        http_client=openai.DefaultAsyncHttpxClient(**shared, event_hooks=async_hooks(connection, _RAISES)),
    )
    client.organization, client.project = connection.scopes.get("organization"), connection.scopes.get("project")
    return client

"""Builds the `openai` clients so that nothing but the connection decides whose account is charged."""

from __future__ import annotations

from typing import Any

import openai

from nightmill.providers.connection import ProviderConnection


def open_client(connection: ProviderConnection, max_retries: int) -> openai.OpenAI:
    """A synchronous client with its own connection pool."""
    client = openai.OpenAI(
        api_key=connection.api_key,
        base_url=connection.base_url,
        timeout=connection.timeout_s,
        max_retries=max_retries,
        http_client=openai.DefaultHttpxClient(**_on_this_machine(connection)) if connection.is_loopback else None,
    )
    # The SDK fills missing ones from OPENAI_ORG_ID and OPENAI_PROJECT_ID; batches would then land elsewhere unseen.
    client.organization, client.project = connection.organization, connection.project
    return client


def without_retries(client: openai.OpenAI) -> openai.OpenAI:
    """The same client for calls that must be sent once: it shares the connection pool."""
    once = client.with_options(max_retries=0)
    once.organization, once.project = client.organization, client.project
    return once


def open_async_client(connection: ProviderConnection, max_retries: int) -> openai.AsyncOpenAI:
    """The asynchronous twin of `open_client`."""
    client = openai.AsyncOpenAI(
        api_key=connection.api_key,
        base_url=connection.base_url,
        timeout=connection.timeout_s,
        max_retries=max_retries,
        http_client=openai.DefaultAsyncHttpxClient(**_on_this_machine(connection)) if connection.is_loopback else None,
    )
    client.organization, client.project = connection.organization, connection.project
    return client


def _on_this_machine(connection: ProviderConnection) -> dict[str, Any]:
    """No proxy of the environment; and no certificates where plain HTTP needs none: loading them costs 40 ms."""
    return {"trust_env": False, "verify": connection.base_url.startswith("https:")}

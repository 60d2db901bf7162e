"""Builds the `openai` clients so that nothing but the connection decides whose account is charged."""

from __future__ import annotations

import openai

from nightmill.providers.connection import ProviderConnection


def open_client(connection: ProviderConnection, max_retries: int) -> openai.OpenAI:
    """A synchronous client with its own connection pool."""
    client = openai.OpenAI(
        api_key=connection.api_key,
        base_url=connection.base_url,
        timeout=connection.timeout_s,
        max_retries=max_retries,
        http_client=openai.DefaultHttpxClient(trust_env=False) if connection.is_loopback else None,
    )
    # The SDK fills missing ones from OPENAI_ORG_ID and OPENAI_PROJECT_ID; batches would then land elsewhere unseen.
    client.organization, client.project = connection.organization, connection.project
    return client


def open_async_client(connection: ProviderConnection, max_retries: int) -> openai.AsyncOpenAI:
    """The asynchronous twin of `open_client`."""
    client = openai.AsyncOpenAI(
        api_key=connection.api_key,
        base_url=connection.base_url,
        timeout=connection.timeout_s,
        max_retries=max_retries,
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False) if connection.is_loopback else None,
    )
    client.organization, client.project = connection.organization, connection.project
    return client

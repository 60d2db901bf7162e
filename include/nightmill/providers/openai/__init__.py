"""OpenAI's Batch API, and servers that speak it."""

from __future__ import annotations

from datetime import timedelta

from nightmill.domain.capabilities import Capabilities, Input, Lookup, QueueLimit, QueueScope, QueueUnit
from nightmill.providers.connection import ProviderConnection, RequestSpec
from nightmill.providers.port import Adapter, BatchWatcher, Dialect, Routes, Transport

CHAT, EMBEDDINGS = "chat", "embeddings"
ENDPOINTS = {CHAT: "/v1/chat/completions", EMBEDDINGS: "/v1/embeddings"}
# https://platform.openai.com/docs/guides/batch: 50,000 requests, 200 MB, a day; files of purpose batch stay 30 days.
# The account's enqueued cap cannot be read.
CAPABILITIES = Capabilities(
    create_is_idempotent=False,
    lookup=Lookup.METADATA,
    absence_grace=timedelta(minutes=3),
    input=Input.FILE,
    most_requests=50_000,
    most_bytes=200_000_000,
    queue=QueueLimit(QueueUnit.TOKENS, QueueScope.MODEL),
    window=timedelta(hours=24),
    results_kept=timedelta(days=30),
    lists_ours=True,
    pinned_scopes=("organization", "project"),
)


def _chat(spec: RequestSpec) -> Dialect:
    from nightmill.providers.dialects.openai_chat import OpenAIChat

    return OpenAIChat(spec)


def _embeddings(spec: RequestSpec) -> Dialect:
    from nightmill.providers.dialects.openai_embeddings import OpenAIEmbeddings

    return OpenAIEmbeddings(spec)


def _transport(connection: ProviderConnection, spec: RequestSpec) -> Transport:
    from nightmill.providers.openai.transport import OpenAIBatches

    return OpenAIBatches(connection, spec, ENDPOINTS[spec.task], CAPABILITIES)


def _watcher(connection: ProviderConnection) -> BatchWatcher:
    from nightmill.providers.openai.watch import OpenAIWatcher

    return OpenAIWatcher(connection)


def _models(connection: ProviderConnection) -> frozenset[str]:
    from nightmill.providers.openai.models import list_models

    return list_models(connection)


def _routes(connection: ProviderConnection) -> Routes:
    from nightmill.providers.openai.routes import batch_routes

    return batch_routes(connection)


def _clock(connection: ProviderConnection) -> timedelta | None:
    from nightmill.providers.openai.models import clock_behind

    return clock_behind(connection)


ADAPTER = Adapter(
    name="openai",
    capabilities=CAPABILITIES,
    dialects={CHAT: _chat, EMBEDDINGS: _embeddings},
    open_transport=_transport,
    open_watcher=_watcher,
    list_models=_models,
    missing_routes=_routes,
    clock_behind=_clock,
)

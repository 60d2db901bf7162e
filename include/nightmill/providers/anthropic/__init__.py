"""Anthropic's Message Batches."""

from __future__ import annotations

from datetime import timedelta

from nightmill.domain.capabilities import Capabilities, Input, Lookup, QueueLimit, QueueScope, QueueUnit
from nightmill.providers.connection import ProviderConnection, RequestSpec
from nightmill.providers.port import Adapter, BatchWatcher, Dialect, Routes, Transport

CHAT = "chat"
# docs, "Batch processing": 100,000 requests or 256 MB in a create call, a day, results for 29 days. How many may wait
# is a limit of the organisation that depends on its tier. A batch that was made is not shown everywhere for minutes
# (seen by users). The bytes leave room for what stands around the requests.
CAPABILITIES = Capabilities(
    create_is_idempotent=False,
    lookup=Lookup.FINGERPRINT,
    absence_grace=timedelta(minutes=10),
    input=Input.INLINE,
    most_requests=100_000,
    most_bytes=255_999_000,
    queue=QueueLimit(QueueUnit.REQUESTS, QueueScope.ORGANISATION),
    window=timedelta(hours=24),
    results_kept=timedelta(days=29),
    pinned_scopes=("workspace",),
)


def _messages(spec: RequestSpec) -> Dialect:
    from nightmill.providers.dialects.anthropic_messages import AnthropicMessages

    return AnthropicMessages(spec)


def _transport(connection: ProviderConnection, spec: RequestSpec) -> Transport:
    from nightmill.providers.anthropic.transport import AnthropicBatches

    return AnthropicBatches(connection, spec, CAPABILITIES)


def _watcher(connection: ProviderConnection) -> BatchWatcher:
    from nightmill.providers.anthropic.watch import AnthropicWatcher

    return AnthropicWatcher(connection)


def _models(connection: ProviderConnection) -> frozenset[str]:
    from nightmill.providers.anthropic.models import list_models

    return list_models(connection)


def _routes(connection: ProviderConnection) -> Routes:
    from nightmill.providers.anthropic.models import batch_routes

    return batch_routes(connection)


def _clock(connection: ProviderConnection) -> timedelta | None:
    from nightmill.providers.anthropic.models import clock_behind

    return clock_behind(connection)


def _token_factor(model: str) -> float:
    from nightmill.providers.anthropic.token_factors import token_factor

    return token_factor(model)


ADAPTER = Adapter(
    name="anthropic",
    capabilities=CAPABILITIES,
    dialects={CHAT: _messages},
    open_transport=_transport,
    open_watcher=_watcher,
    list_models=_models,
    missing_routes=_routes,
    clock_behind=_clock,
    token_factor=_token_factor,
)

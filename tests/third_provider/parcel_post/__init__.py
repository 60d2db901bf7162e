"""A third party's adapter: a provider that sends parcels of slips, with words, limits and habits of its own.

It takes requests inside the create call, knows no schema and no files, finds a lost parcel by its label, has no
asynchronous side and lists no models. nightmill finds it by its entry point alone.
"""

from __future__ import annotations

from datetime import timedelta

from nightmill.domain.capabilities import Capabilities, Input, Lookup, QueueLimit, QueueScope, QueueUnit
from nightmill.providers.connection import ProviderConnection, RequestSpec
from nightmill.providers.port import Adapter, Dialect, Transport

CAPABILITIES = Capabilities(
    create_is_idempotent=False,
    lookup=Lookup.NAME,
    absence_grace=timedelta(0),
    input=Input.INLINE,
    most_requests=7,
    most_bytes=100_000,
    queue=QueueLimit(QueueUnit.JOBS, QueueScope.ORGANISATION),
    window=timedelta(hours=6),
    results_kept=timedelta(hours=48),
    lists_ours=True,
    pinned_scopes=("region",),
)


def _slips(spec: RequestSpec) -> Dialect:
    from parcel_post.dialect import Slips

    return Slips(spec)


def _parcels(connection: ProviderConnection, _spec: RequestSpec) -> Transport:
    from parcel_post.transport import Parcels

    return Parcels(connection)


ADAPTER = Adapter("parcel_post", CAPABILITIES, {"chat": _slips}, _parcels, token_factor=lambda _model: 1.5)

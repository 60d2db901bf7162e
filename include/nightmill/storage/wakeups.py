"""What the triggerer asks the ledger: one read-only query for all waiting shards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

import psycopg

from nightmill.storage import sql


@dataclass(slots=True)
class Wakeups:
    """Shards that are due now, and the provider batches that the others wait for (provider id -> shard id).
    `since` is when the oldest of these was submitted."""

    due: set[int] = field(default_factory=set)
    waiting_for: dict[str, int] = field(default_factory=dict)
    since: datetime | None = None


async def read(conn: psycopg.AsyncConnection[tuple[object, ...]], shard_ids: Iterable[int]) -> Wakeups:
    """Read all watched shards at once. A shard that does not exist any more is due: its task finds out why."""
    found = Wakeups()
    cursor = await conn.execute(sql.text("shard/wakeup"), {"shard_ids": list(shard_ids)})
    async for shard_id, due, provider_id, submitted_at in cursor:
        assert isinstance(shard_id, int)
        if due:
            found.due.add(shard_id)
        if isinstance(provider_id, str) and isinstance(submitted_at, datetime):
            found.waiting_for[provider_id] = shard_id
            found.since = min(found.since or submitted_at, submitted_at)
    return found

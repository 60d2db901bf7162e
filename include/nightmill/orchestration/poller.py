"""One poller per triggerer process, ledger and provider account, shared by all waiting shards.

Each interval costs one query and one list call, however many shards wait. It reads only: the woken task looks again
and records what it sees.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from nightmill.domain.snapshots import BatchStatus
from nightmill.providers.port import BatchWatcher
from nightmill.storage import session, wakeups
from nightmill.storage.session import AsyncConnection
from nightmill.storage.wakeups import Wakeups

log = logging.getLogger(__name__)

CALLS_FOR_ACTION = frozenset({BatchStatus.ENDED, BatchStatus.FAILED, BatchStatus.UNKNOWN})

TICK_LIMIT_S = 300.0  # a connection that died silently must not keep the poller waiting for ever

Opener = Callable[[], Awaitable[tuple[str, BatchWatcher]]]  # opens (ledger DSN, watcher)


@dataclass(eq=False)
class Watch:
    """One waiting shard. `reason` says why it was woken."""

    shard_id: int
    interval_s: float
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    reason: str = ""

    def wake(self, reason: str) -> None:
        """Wake the shard's trigger; the first reason counts."""
        if not self.woken.is_set():
            self.reason = reason
            self.woken.set()


class ShardPoller:
    """Polls while somebody watches. Faults of the ledger or the provider are logged and tried again next time."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._watches: set[Watch] = set()
        self._task: asyncio.Task[None] | None = None
        self._conn: AsyncConnection | None = None
        self._watcher: BatchWatcher | None = None

    def add(self, watch: Watch) -> None:
        """Start watching a shard."""
        self._watches.add(watch)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def remove(self, watch: Watch) -> None:
        """Stop watching a shard; the poller ends by itself when nobody watches."""
        self._watches.discard(watch)

    async def _run(self) -> None:
        try:
            while self._watches:
                await asyncio.sleep(min(watch.interval_s for watch in self._watches))
                if self._watches:
                    await self._tick()
        finally:
            self._task = None  # closing takes a moment: a watch added meanwhile starts a new task
            await self._close()

    async def _tick(self) -> None:
        watched = {watch.shard_id for watch in self._watches}
        try:
            async with asyncio.timeout(TICK_LIMIT_S):
                found = await self._read(list(watched))
                for shard_id in found.due:
                    self._wake(shard_id, "due")
                for shard_id, status in (await self._changed(found)).items():
                    self._wake(shard_id, f"provider batch {status}")
        except Exception as fault:  # whatever it is: nobody would ever wake these shards if the poller ended
            log.warning("polling for %s shards failed (%s); trying again", len(watched), type(fault).__name__)
            await self._close()

    def _wake(self, shard_id: int, reason: str) -> None:
        """A shard that somebody cleared can be watched twice for a moment: by the old trigger and by the new one."""
        for watch in self._watches:
            if watch.shard_id == shard_id:
                watch.wake(reason)

    async def _read(self, shard_ids: list[int]) -> Wakeups:
        if self._conn is None or self._watcher is None:
            dsn, self._watcher = await self._opener()
            self._conn = await session.connect_async(dsn, application="nightmill triggerer")
        return await wakeups.read(self._conn, shard_ids)

    async def _changed(self, found: Wakeups) -> dict[int, BatchStatus]:
        """Shards whose provider batch needs a look, by one listing."""
        if not found.waiting_for or found.since is None or self._watcher is None:
            return {}
        statuses = await self._watcher.statuses(found.waiting_for, found.since)
        log.info(
            "%s shards wait for %s provider batches, %s listed",
            len(self._watches), len(found.waiting_for), len(statuses),
        )  # fmt: skip
        return {found.waiting_for[one]: status for one, status in statuses.items() if status in CALLS_FOR_ACTION}

    async def _close(self) -> None:
        conn, watcher, self._conn, self._watcher = self._conn, self._watcher, None, None
        with suppress(Exception):  # what is broken already cannot be closed properly
            if conn is not None:
                await conn.close()
        with suppress(Exception):
            if watcher is not None:
                await watcher.close()


_pollers: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, ...], ShardPoller]] = WeakKeyDictionary()


def shared(key: tuple[str, ...], opener: Opener) -> ShardPoller:
    """The poller of this event loop for a ledger and a provider account."""
    of_loop = _pollers.setdefault(asyncio.get_running_loop(), {})
    return of_loop.setdefault(key, ShardPoller(opener))

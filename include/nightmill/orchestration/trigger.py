"""The trigger of a waiting shard. It holds ids only, writes nothing and cancels nothing, whatever ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from nightmill.orchestration.connections import lookup_async
from nightmill.orchestration.poller import Watch, shared
from nightmill.providers.port import BatchWatcher
from nightmill.providers.registry import open_watcher
from nightmill.services.connections import LEDGER

# An event within about a second of the deferral can fail the task by a race in Airflow 3.3.2 (apache/airflow#71580).
FIRST_EVENT_S = 10.0


class ShardTrigger(BaseTrigger):
    """Fires when there is something to do for a shard: it is due, its batch ended, or a provider batch needs a look."""

    def __init__(self, shard_id: int, provider_conn_id: str, adapter: str, poll_interval_s: float) -> None:
        super().__init__()
        self.shard_id = shard_id
        self.provider_conn_id = provider_conn_id
        self.adapter = adapter
        self.poll_interval_s = poll_interval_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments, as the triggerer stores them."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "shard_id": self.shard_id,
                "provider_conn_id": self.provider_conn_id,
                "adapter": self.adapter,
                "poll_interval_s": self.poll_interval_s,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait for the shared poller; yields one event."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        poller = shared((LEDGER, self.adapter, self.provider_conn_id), self._open)
        watch = Watch(self.shard_id, self.poll_interval_s)
        poller.add(watch)
        try:
            await watch.woken.wait()
            await asyncio.sleep(max(0.0, began + FIRST_EVENT_S - loop.time()))
        finally:
            poller.remove(watch)
        yield TriggerEvent({"shard_id": self.shard_id, "reason": watch.reason})

    async def _open(self) -> tuple[str, BatchWatcher]:
        ledger = await lookup_async(LEDGER)
        provider = await lookup_async(self.provider_conn_id)
        return ledger.database_url(), open_watcher(self.adapter, provider.provider_account(timeout_s=30))

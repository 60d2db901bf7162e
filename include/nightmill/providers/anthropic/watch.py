"""The asynchronous side for the triggerer: one listing tells the status of many batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import anthropic
import httpx2

from nightmill.domain.errors import NightmillError
from nightmill.domain.snapshots import BatchStatus
from nightmill.providers.anthropic.client import open_async_client
from nightmill.providers.anthropic.faults import fault_of
from nightmill.providers.anthropic.shapes import PAGE_SIZE, status_of
from nightmill.providers.call_faults import malformed
from nightmill.providers.cleaning import identifier, word
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.json_answers import MalformedAnswerError, json_object
from nightmill.providers.listing import ListingWalk

_DOING = "listing batches"


class AnthropicWatcher:
    """Reads statuses and changes nothing. One SDK retry only: the next interval asks again anyhow. What the listing
    does not show, the shards' own wake-ups look at."""

    def __init__(self, connection: ProviderConnection, page_cap: int = 20) -> None:
        self._connection = connection
        self._page_cap = page_cap
        self._client = open_async_client(connection, max_retries=1)

    async def statuses(self, provider_ids: Iterable[str], since: datetime) -> Mapping[str, BatchStatus]:
        """Stops as soon as every id was seen, or at entries older than `since`."""
        wanted = set(provider_ids)
        seen: dict[str, BatchStatus] = {}
        walk = ListingWalk(since, PAGE_SIZE, self._page_cap)
        while not walk.done and len(seen) < len(wanted):
            for entry in await self._page(walk):
                name, status = identifier(entry["id"]), word(entry.get("processing_status"))
                if name in wanted and status:
                    seen[name] = status_of(status)
        return seen

    async def close(self) -> None:
        await self._client.close()

    async def _page(self, walk: ListingWalk) -> list[Mapping[str, Any]]:
        fault: NightmillError
        api = self._client.messages.batches.with_raw_response
        try:
            listing = await api.list(after_id=walk.after or anthropic.omit, limit=PAGE_SIZE)
            return walk.take(json_object(listing.http_response.content))
        except (anthropic.AnthropicError, httpx2.HTTPError) as error:
            fault = fault_of(error, _DOING, self._connection, lagging=False)
        except MalformedAnswerError as error:
            fault = malformed(str(error), _DOING, self._connection)
        raise fault

"""The asynchronous side for the triggerer: one listing tells the status of many batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import httpx2
import openai

from nightmill.domain.errors import NightmillError
from nightmill.providers.cleaning import identifier, word
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.openai_client import open_async_client
from nightmill.providers.openai_faults import fault_of, malformed
from nightmill.providers.openai_listing import PAGE_SIZE, ListingWalk
from nightmill.providers.openai_shapes import MalformedAnswerError, json_object, status_of
from nightmill.providers.port import BatchStatus

_DOING = "listing batches"


class OpenAIWatcher:
    """Reads statuses and changes nothing. One SDK retry only: the next interval asks again anyhow."""

    def __init__(self, connection: ProviderConnection, page_cap: int = 20) -> None:
        self._connection = connection
        self._page_cap = page_cap
        self._client = open_async_client(connection, max_retries=1)

    async def statuses(self, provider_ids: Iterable[str], since: datetime) -> Mapping[str, BatchStatus]:
        """Stops as soon as every id was seen, or at entries older than `since`."""
        wanted = set(provider_ids)
        seen: dict[str, BatchStatus] = {}
        walk = ListingWalk(since, self._page_cap)
        while not walk.done and len(seen) < len(wanted):
            fault: NightmillError
            try:
                for entry in walk.take(await self._page(walk.after)):
                    name, status = identifier(entry["id"]), word(entry.get("status"))
                    if name in wanted and status:
                        seen[name] = status_of(status)
                continue
            except (openai.OpenAIError, httpx2.HTTPError) as error:
                fault = fault_of(error, _DOING, self._connection, lagging=False)
            except MalformedAnswerError as error:
                fault = malformed(str(error), _DOING, self._connection)
            raise fault
        return seen

    async def close(self) -> None:
        await self._client.close()

    async def _page(self, after: str | None) -> dict[str, Any]:
        listing = self._client.batches.with_raw_response.list(after=after or openai.omit, limit=PAGE_SIZE)
        return json_object((await listing).http_response.content)

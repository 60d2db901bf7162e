"""The asynchronous side for the triggerer: one listing tells the status of many batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import httpx2
import openai

from nightmill.domain.errors import NightmillError
from nightmill.domain.snapshots import BatchStatus
from nightmill.providers.call_faults import malformed
from nightmill.providers.cleaning import as_sent, identifier, word
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.json_answers import MalformedAnswerError, json_object
from nightmill.providers.listing import NO_LISTING, ListingWalk
from nightmill.providers.openai.client import open_async_client
from nightmill.providers.openai.faults import fault_of
from nightmill.providers.openai.shapes import PAGE_SIZE, batch_snapshot, status_of

_DOING = "listing batches"
MOST_BY_ID = 50  # calls of one interval; the shards' own wake-ups look at the others


class OpenAIWatcher:
    """Reads statuses and changes nothing. One SDK retry only: the next interval asks again anyhow."""

    def __init__(self, connection: ProviderConnection, page_cap: int = 20) -> None:
        self._connection = connection
        self._page_cap = page_cap
        self._client = open_async_client(connection, max_retries=1)

    async def statuses(self, provider_ids: Iterable[str], since: datetime) -> Mapping[str, BatchStatus]:
        """Stops as soon as every id was seen, or at entries older than `since`. Where the listing does not show them
        all and cannot be read to its end, or does not exist, the others are asked for one by one."""
        wanted = set(provider_ids)
        seen: dict[str, BatchStatus] = {}
        walk = ListingWalk(since, PAGE_SIZE, self._page_cap)
        while not walk.done and len(seen) < len(wanted):
            for entry in await self._page(walk):
                name, status = identifier(entry["id"]), word(entry.get("status"))
                if name in wanted and status:
                    seen[name] = status_of(status)
        if not walk.complete:
            for name in sorted(wanted - seen.keys())[:MOST_BY_ID]:
                status = await self._status(name)
                if status is not None:
                    seen[name] = status
        return seen

    async def close(self) -> None:
        await self._client.close()

    async def _page(self, walk: ListingWalk) -> list[Mapping[str, Any]]:
        """The next page's entries; none, and the walk's end, where there is no listing."""
        fault: NightmillError
        try:
            listing = self._client.batches.with_raw_response.list(after=walk.after or openai.omit, limit=PAGE_SIZE)
            return walk.take(json_object((await listing).http_response.content))
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            if isinstance(error, openai.APIStatusError) and error.status_code in NO_LISTING:
                walk.done = True
                return []
            fault = fault_of(error, _DOING, self._connection, lagging=False)
        except MalformedAnswerError as error:
            fault = malformed(str(error), _DOING, self._connection)
        raise fault

    async def _status(self, provider_id: str) -> BatchStatus | None:
        """Of one batch; None where it is not there just now."""
        fault: NightmillError
        try:
            answer = await self._client.batches.with_raw_response.retrieve(as_sent(provider_id))
            return batch_snapshot(json_object(answer.http_response.content)).status
        except openai.NotFoundError:
            return None
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            fault = fault_of(error, f"polling batch {provider_id}", self._connection, lagging=True)
        except MalformedAnswerError as error:
            fault = malformed(str(error), f"polling batch {provider_id}", self._connection)
        raise fault

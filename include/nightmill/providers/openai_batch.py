"""OpenAI's Batch API, and servers that speak it, behind the provider port."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx2
import openai

from nightmill.domain.errors import NightmillError, ProviderRefused
from nightmill.jobs.settings.job import EMBEDDINGS, RESERVES
from nightmill.providers.cleaning import as_sent, identifier
from nightmill.providers.connection import ProviderConnection, RequestSpec
from nightmill.providers.openai_client import open_client, without_retries
from nightmill.providers.openai_download import FileDownload
from nightmill.providers.openai_faults import create_fault, fault_of, malformed, submit_unknown
from nightmill.providers.openai_lines import read_lines
from nightmill.providers.openai_listing import NO_LISTING, PAGE_SIZE, ListingWalk, NoListingError, time_in
from nightmill.providers.openai_requests import RequestEncoder
from nightmill.providers.openai_shapes import (
    TOKEN_KEY,
    MalformedAnswerError,
    batch_snapshot,
    file_id,
    json_object,
    read_time,
    token_of,
)
from nightmill.providers.port import BatchSnapshot, BatchStatus, Limits, ResultLine, SearchResult

# https://platform.openai.com/docs/guides/batch: 50,000 requests, 200 MB. The account's enqueued cap is not readable.
OPENAI_LIMITS = Limits(requests_per_file=50_000, bytes_per_file=200_000_000, enqueued_prompt_tokens=None)
_T = TypeVar("_T")
_NOT_ASCII_WORD = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(slots=True)
class _Seen:
    """How much the provider's clock is behind ours, by the Date of its answers; None where they have none."""

    behind: timedelta | None = None


class OpenAIBatch:
    """The synchronous adapter. Calls that are safe to repeat use the SDK's retries; creating a batch never does,
    because the SDK sends no idempotency key and a second create is a second paid batch."""

    def __init__(self, connection: ProviderConnection, request: RequestSpec, limits: Limits = OPENAI_LIMITS) -> None:
        self.limits = limits
        self._connection = connection
        self._request = request
        self._encoder = RequestEncoder(request)
        self._larger: dict[int, RequestEncoder] = {}  # by output reserve
        self._client = open_client(connection, connection.max_retries)
        self._once = without_retries(self._client)

    def request_line(self, custom_id: str, messages: Sequence[Mapping[str, str]]) -> bytes:
        return self._encoder.line(custom_id, messages)

    def with_output_reserve(self, custom_id: str, messages: Sequence[Mapping[str, str]], tokens: int) -> bytes:
        if tokens not in self._larger:
            limited = {name: tokens for name in RESERVES if name in self._request.parameters}
            parameters = {**self._request.parameters, **limited}
            self._larger[tokens] = RequestEncoder(replace(self._request, parameters=parameters))
        return self._larger[tokens].line(custom_id, messages)

    def upload(self, path: Path) -> str:
        """The name that goes out is ASCII and ends in .jsonl, whatever the local one is: both are provider rules."""
        name = _NOT_ASCII_WORD.sub("_", path.name.partition(".")[0])[:80] + ".jsonl"

        def send() -> bytes:
            with path.open("rb") as source:
                answer = self._client.files.with_raw_response.create(
                    file=(name, source, "application/jsonl"), purpose="batch"
                )
            return answer.http_response.content

        return self._repeatable(f"uploading {name}", send, file_id)

    def submit(self, input_file_id: str, token: str) -> BatchSnapshot:
        doing = f"creating a batch from file {input_file_id}"
        fault: NightmillError
        try:
            answer = self._once.batches.with_raw_response.create(
                input_file_id=as_sent(input_file_id),
                endpoint=cast(Any, self._request.endpoint),
                completion_window=cast(Any, self._request.completion_window),
                metadata={TOKEN_KEY: token},
            )
            return batch_snapshot(json_object(answer.http_response.content))
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            fault = create_fault(error, doing, self._connection)
        except MalformedAnswerError as error:
            fault = submit_unknown(str(error), doing, self._connection)
        raise fault  # out here without the SDK's exception, whose text holds the provider's whole answer

    def find_submitted(self, input_file_id: str, token: str, since: datetime) -> SearchResult:
        """What was made "before" `since` can still be ours: the provider's clock counts, as it shows in its answers and
        in the birth of the input file, which it made before any batch of it."""
        seen = _Seen()

        def horizon() -> datetime | None:
            times = [self._made_at(input_file_id), None if seen.behind is None else since - seen.behind]
            return min((one for one in times if one is not None), default=None)

        return self._search(
            ListingWalk(since, horizon=horizon),
            lambda entry, carried: identifier(entry.get("input_file_id")) == input_file_id or carried == token,
            seen,
        )

    def list_submitted(self, since: datetime) -> SearchResult:
        return self._search(ListingWalk(since), lambda _, carried: carried is not None, _Seen())

    def poll(self, provider_id: str) -> BatchSnapshot:
        """A 404 raises ProviderUnavailable: replicas lag behind, so the caller decides when a batch counts as lost."""

        def send() -> bytes:
            return self._client.batches.with_raw_response.retrieve(as_sent(provider_id)).http_response.content

        return self._repeatable(
            f"polling batch {provider_id}", send, lambda body: batch_snapshot(json_object(body)), lagging=True
        )

    def cancel(self, provider_id: str) -> BatchSnapshot:
        def send() -> bytes:
            return self._once.batches.with_raw_response.cancel(as_sent(provider_id)).http_response.content

        try:
            return self._repeatable(
                f"cancelling batch {provider_id}", send, lambda body: batch_snapshot(json_object(body)), lagging=True
            )
        except NightmillError as refusal:
            if isinstance(refusal, ProviderRefused) and refusal.status in (401, 403):
                raise
            now = self.poll(provider_id)  # an ended batch cannot be cancelled; that is as good
            if now.status in (BatchStatus.ENDED, BatchStatus.FAILED) or now.raw_status.casefold().startswith("cancel"):
                return now
            raise

    def download(self, file_id: str, path: Path) -> int:
        return FileDownload(self._client, self._connection, file_id, path).run()

    def read_lines(self, lines: Iterable[bytes]) -> Iterator[ResultLine]:
        return read_lines(lines, vectors=self._request.endpoint == EMBEDDINGS)

    def delete_file(self, file_id: str) -> None:
        fault: NightmillError
        try:
            self._client.files.with_raw_response.delete(as_sent(file_id))
            return
        except openai.NotFoundError:
            return
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            fault = fault_of(error, f"deleting file {file_id}", self._connection, lagging=True)
        raise fault

    def close(self) -> None:
        self._client.close()
        self._once.close()

    def _search(
        self, walk: ListingWalk, wanted: Callable[[Mapping[str, Any], str | None], bool], seen: _Seen
    ) -> SearchResult:
        """Walk the listing; `wanted` gets an entry and the token in its metadata. What is found needs no proof."""
        found: list[BatchSnapshot] = []

        def ours(entry: Mapping[str, Any]) -> bool:
            return wanted(entry, token_of(entry))

        while not walk.done:
            try:
                fresh = walk.take(self._page(walk.after, seen), found=ours)
            except NoListingError as error:
                return SearchResult(tuple(found), False, str(error), listed=False)
            except MalformedAnswerError as error:
                return SearchResult(tuple(found), False, f"its listing of batches is not the API's ({error})")
            found += [self._snapshot(entry, "looking for submitted batches") for entry in fresh if ours(entry)]
        return SearchResult(tuple(found), walk.complete, walk.why)

    def _page(self, after: str | None, seen: _Seen) -> dict[str, Any]:
        def send() -> bytes:
            try:
                listing = self._client.batches.with_raw_response.list(after=after or openai.omit, limit=PAGE_SIZE)
            except openai.APIStatusError as error:
                if error.status_code in NO_LISTING:
                    raise NoListingError(f"it has no listing of batches (HTTP {error.status_code})") from None
                raise
            there = time_in(listing.http_response.headers)
            if there is not None:
                seen.behind = max(datetime.now(UTC) - there, seen.behind or timedelta.min)
            return listing.http_response.content

        return self._repeatable("listing batches", send, json_object)

    def _made_at(self, file_id: str) -> datetime | None:
        """When a file of ours was made, by the provider's clock. A second opinion: without it the rest still holds."""
        try:
            answer = self._client.files.with_raw_response.retrieve(as_sent(file_id))
            return read_time(json_object(answer.http_response.content).get("created_at"))
        except (openai.OpenAIError, httpx2.HTTPError, MalformedAnswerError):
            return None

    def _snapshot(self, entry: Mapping[str, Any], doing: str) -> BatchSnapshot:
        try:
            return batch_snapshot(entry)
        except MalformedAnswerError as error:
            fault = malformed(str(error), doing, self._connection)
        raise fault

    def _repeatable(
        self, doing: str, send: Callable[[], bytes], read: Callable[[bytes], _T], *, lagging: bool = False
    ) -> _T:
        fault: NightmillError
        try:
            return read(send())
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            fault = fault_of(error, doing, self._connection, lagging=lagging)
        except MalformedAnswerError as error:
            fault = malformed(str(error), doing, self._connection)
        raise fault

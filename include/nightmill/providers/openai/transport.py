"""OpenAI's Batch API, and servers that speak it, behind the provider port."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx2
import msgspec
import openai

from nightmill.domain.capabilities import Capabilities
from nightmill.domain.errors import NightmillError, ProviderRefused
from nightmill.domain.snapshots import (
    Absent,
    BatchStatus,
    Found,
    LookupResult,
    Snapshot,
    Stopped,
    Unclear,
    holds_answers,
)
from nightmill.providers.answers import Reply, Unreadable
from nightmill.providers.call_faults import malformed, submit_unknown
from nightmill.providers.cleaning import as_sent, identifier
from nightmill.providers.connection import ProviderConnection, RequestSpec
from nightmill.providers.json_answers import MalformedAnswerError, json_object, read_time
from nightmill.providers.listing import NO_LISTING, ListingWalk, NoListingError, time_in
from nightmill.providers.openai.client import open_client, without_retries
from nightmill.providers.openai.download import FileDownload
from nightmill.providers.openai.envelope import ID_KEY, Wrapper, unwrap
from nightmill.providers.openai.faults import create_fault, fault_of
from nightmill.providers.openai.shapes import (
    PAGE_SIZE,
    TOKEN_KEY,
    batch_snapshot,
    file_id,
    token_of,
)
from nightmill.providers.port import Handle, Listing, ResultFile, Results, SentCreate

_T = TypeVar("_T")
_NOT_ASCII_WORD = re.compile(r"[^A-Za-z0-9_-]")
_ANSWERED_ALL = (400, 404, 409, 413, 422)  # of a plain call: what it says is about the request


@dataclass(slots=True)
class _Seen:
    """How much the provider's clock is behind ours, by the Date of its answers; None where they have none."""

    behind: timedelta | None = None


@dataclass(frozen=True, slots=True)
class _Search:
    """What a walk of the listing found. `why` says what it lacks where it is not `complete`; `listed` is False where
    the provider has no listing at all."""

    found: tuple[Snapshot, ...]
    complete: bool
    why: str = ""
    listed: bool = True


class OpenAIBatches:
    """The transport. Calls that are safe to repeat use the SDK's retries; creating a batch never does, because the SDK
    sends no idempotency key and a second create is a second paid batch."""

    id_key = ID_KEY

    def __init__(
        self, connection: ProviderConnection, spec: RequestSpec, endpoint: str, capabilities: Capabilities
    ) -> None:
        self.capabilities = capabilities
        self._connection = connection
        self._spec = spec
        self._endpoint = endpoint
        self._wrapper = Wrapper(endpoint)
        self._client = open_client(connection, connection.max_retries)
        self._once = without_retries(self._client)

    def wrap(self, record_id: str, body: bytes) -> bytes:
        return self._wrapper.wrap(record_id, body)

    def unwrap(self, line: bytes) -> tuple[str, Reply] | Unreadable:
        return unwrap(line)

    def stage_input(self, path: Path) -> str:
        """The name that goes out is ASCII and ends in .jsonl, whatever the local one is: both are provider rules."""
        name = _NOT_ASCII_WORD.sub("_", path.name.partition(".")[0])[:80] + ".jsonl"

        def send() -> bytes:
            with path.open("rb") as source:
                answer = self._client.files.with_raw_response.create(
                    file=(name, source, "application/jsonl"), purpose="batch"
                )
            return answer.http_response.content

        return self._repeatable(f"uploading {name}", send, file_id)

    def create(self, requests: str | Path, token: str) -> Handle:
        doing = f"creating a batch from file {requests}"
        fault: NightmillError
        try:
            answer = self._once.batches.with_raw_response.create(
                input_file_id=as_sent(str(requests)),
                endpoint=cast(Any, self._endpoint),
                completion_window=cast(Any, self._spec.completion_window),
                metadata={TOKEN_KEY: token},
            )
            made = batch_snapshot(json_object(answer.http_response.content))
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            fault = create_fault(error, doing, self._connection)
        except MalformedAnswerError as error:
            fault = submit_unknown(str(error), doing, self._connection)
        else:
            return Handle(made.provider_id, made.raw_status, made.window_ends_at, made.results_until)
        raise fault  # out here without the SDK's exception, whose text holds the provider's whole answer

    def lookup(self, sent: SentCreate) -> LookupResult:
        """What was made "before" `since` can still be ours: the provider's clock counts, as it shows in its answers and
        in the birth of the input file, which it made before any batch of it."""
        seen = _Seen()

        def horizon() -> datetime | None:
            made_at = self._made_at(sent.input_ref) if sent.input_ref is not None else None
            times = [made_at, None if seen.behind is None else sent.since - seen.behind]
            return min((one for one in times if one is not None), default=None)

        def ours(entry: Mapping[str, Any], carried: str | None) -> bool:
            made_from = identifier(entry.get("input_file_id"))
            return carried == sent.token or (made_from is not None and made_from == sent.input_ref)

        search = self._search(ListingWalk(sent.since, PAGE_SIZE, horizon=horizon), ours, seen)
        if search.found:
            return Found(search.found[0], search.found[1:])
        return Absent() if search.complete else Unclear(search.why, can_change=search.listed)

    def list_ours(self, since: datetime) -> Listing:
        search = self._search(ListingWalk(since, PAGE_SIZE), lambda _, carried: carried is not None, _Seen())
        return Listing(search.found, search.complete, search.why)

    def poll(self, provider_id: str) -> Snapshot:
        def send() -> bytes:
            return self._client.batches.with_raw_response.retrieve(as_sent(provider_id)).http_response.content

        return self._repeatable(
            f"polling batch {provider_id}", send, lambda body: batch_snapshot(json_object(body)), lagging=True
        )

    def cancel(self, provider_id: str) -> Snapshot:
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
            if now.status in (BatchStatus.ENDED, BatchStatus.FAILED) or now.stopped is Stopped.CANCELLED:
                return now
            raise

    def results(self, provider_id: str, refs: Mapping[str, str], folder: Path, stem: str) -> Results:
        """Answers first. Nobody says how many lines a file has; its size is checked."""
        named = sorted(refs.items(), key=lambda one: not holds_answers(one[0]))
        return Results([self._fetched(name, ref, folder / f"{stem}.{name}") for name, ref in named])

    def _fetched(self, name: str, ref: str, path: Path) -> ResultFile:
        return ResultFile(name, path, FileDownload(self._client, self._connection, ref, path).run())

    def discard_input(self, ref: str) -> None:
        fault: NightmillError
        try:
            self._client.files.with_raw_response.delete(as_sent(ref))
            return
        except openai.NotFoundError:
            return
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            fault = fault_of(error, f"deleting file {ref}", self._connection, lagging=True)
        raise fault

    def ask(self, body: bytes) -> Reply:
        """Sent once: a second one would be paid too."""
        fault: NightmillError
        path = "/" + self._endpoint.removeprefix("/v1/")
        try:
            options: Any = {"headers": {"content-type": "application/json"}}
            answer = self._once.post(path, cast_to=httpx2.Response, content=body, options=options)
            return Reply(msgspec.Raw(answer.content), answer.status_code)
        except openai.APIStatusError as error:
            if error.status_code in _ANSWERED_ALL:
                return Reply(msgspec.Raw(error.response.content or b"null"), error.status_code)
            fault = fault_of(error, "asking for one answer", self._connection, lagging=False)
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            fault = fault_of(error, "asking for one answer", self._connection, lagging=False)
        raise fault

    def close(self) -> None:
        self._client.close()
        self._once.close()

    def _search(
        self, walk: ListingWalk, wanted: Callable[[Mapping[str, Any], str | None], bool], seen: _Seen
    ) -> _Search:
        """Walk the listing; `wanted` gets an entry and the token in its metadata. What is found needs no proof."""
        found: list[Snapshot] = []

        def ours(entry: Mapping[str, Any]) -> bool:
            return wanted(entry, token_of(entry))

        while not walk.done:
            try:
                fresh = walk.take(self._page(walk.after, seen), found=ours)
            except NoListingError as error:
                return _Search(tuple(found), False, str(error), listed=False)
            except MalformedAnswerError as error:
                return _Search(tuple(found), False, f"its listing of batches is not the API's ({error})")
            found += [self._snapshot(entry, "looking for submitted batches") for entry in fresh if ours(entry)]
        return _Search(tuple(found), walk.complete, walk.why)

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

    def _snapshot(self, entry: Mapping[str, Any], doing: str) -> Snapshot:
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

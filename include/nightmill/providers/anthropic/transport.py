"""Anthropic's Message Batches behind the provider port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import anthropic
import httpx2
import msgspec

from nightmill.domain.capabilities import Capabilities
from nightmill.domain.errors import NightmillError, ProviderRefused
from nightmill.domain.snapshots import OUTPUT, BatchStatus, LookupResult, Snapshot, Stopped
from nightmill.providers.answers import Reply, Unreadable
from nightmill.providers.anthropic.batch_body import BatchBody
from nightmill.providers.anthropic.client import WORKSPACE, open_clients, workspace_of
from nightmill.providers.anthropic.envelope import ID_KEY, unwrap, wrap
from nightmill.providers.anthropic.faults import create_fault, fault_of
from nightmill.providers.anthropic.lookup import Lookup
from nightmill.providers.anthropic.results import ResultStream
from nightmill.providers.anthropic.shapes import PAGE_SIZE, batch_snapshot
from nightmill.providers.call_faults import malformed, submit_unknown
from nightmill.providers.cleaning import as_sent, word
from nightmill.providers.connection import ProviderConnection, RequestSpec
from nightmill.providers.dialects.anthropic_messages import BETAS
from nightmill.providers.json_answers import MalformedAnswerError, json_object
from nightmill.providers.listing import NO_LISTING, NoListingError, time_in
from nightmill.providers.port import Handle, Listing, ResultFile, Results, SentCreate

_T = TypeVar("_T")
MESSAGES, BATCHES = "/v1/messages", "/v1/messages/batches"
_ANSWERED_ALL = (400, 404, 409, 413, 422)  # of a plain call: what it says is about the request
_JSON = {"content-type": "application/json"}


class AnthropicBatches:
    """The transport. Requests travel in the create call itself, so nothing is staged and a late create call cannot be
    stopped. Calls that are safe to repeat use the SDK's retries; a create call never does: a second one is a second
    paid batch."""

    id_key = ID_KEY

    def __init__(self, connection: ProviderConnection, spec: RequestSpec, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self._connection = connection
        betas = spec.parameters.get(BETAS) or ()
        self._headers = _JSON | ({"anthropic-beta": ",".join(betas)} if betas else {})
        self._clients = open_clients(connection, connection.max_retries)
        self._api = self._clients.sdk.messages.batches.with_raw_response
        self._once = self._clients.once

    def wrap(self, record_id: str, body: bytes) -> bytes:
        return wrap(record_id, body)

    def unwrap(self, line: bytes) -> tuple[str, Reply] | Unreadable:
        return unwrap(line)

    def stage_input(self, path: Path) -> None:
        """The create call carries the requests."""
        return

    def create(self, requests: str | Path, token: str) -> Handle:
        """The token goes out in the requests' ids: the API keeps nothing of a batch's maker."""
        body, doing = BatchBody(Path(requests)), "creating a batch"
        headers = self._headers | {"content-length": str(body.size)}
        fault: NightmillError
        try:
            content: Any = body
            answer = self._once.post(BATCHES, cast_to=httpx2.Response, content=content, options={"headers": headers})
            made = batch_snapshot(json_object(answer.content))
        except (anthropic.AnthropicError, httpx2.HTTPError) as error:
            fault = create_fault(error, doing, self._connection)
        except MalformedAnswerError as error:
            fault = submit_unknown(str(error), doing, self._connection)
        else:
            workspace = word(answer.headers.get(WORKSPACE))
            scopes = {"workspace": workspace} if workspace else {}
            return Handle(made.provider_id, made.raw_status, made.window_ends_at, made.results_until, scopes)
        raise fault  # out here without the SDK's exception, whose text holds the provider's whole answer

    def lookup(self, sent: SentCreate) -> LookupResult:
        return Lookup(self._page, lambda provider_id, token: self._results(provider_id).is_of(token)).run(sent)

    def list_ours(self, since: datetime) -> Listing:
        return Listing((), False, "a message batch carries no token of ours")

    def poll(self, provider_id: str) -> Snapshot:
        doing = f"polling batch {provider_id}"
        return self._repeatable(doing, lambda: self._api.retrieve(as_sent(provider_id)).http_response, _snapshot)

    def cancel(self, provider_id: str) -> Snapshot:
        api, doing = self._once.messages.batches.with_raw_response, f"cancelling batch {provider_id}"
        try:
            return self._repeatable(doing, lambda: api.cancel(as_sent(provider_id)).http_response, _snapshot)
        except NightmillError as refusal:
            if isinstance(refusal, ProviderRefused) and refusal.status in (401, 403):
                raise
            now = self.poll(provider_id)  # an ended batch cannot be cancelled; that is as good
            if now.status is BatchStatus.ENDED or now.stopped is Stopped.CANCELLED:
                return now
            raise

    def results(self, provider_id: str, refs: Mapping[str, str], folder: Path, stem: str) -> Results:
        """One stream of results, as many lines as the batch's counts add up to."""
        expected = self.poll(provider_id).requests_total
        path = folder / f"{stem}.{OUTPUT}"
        files = [ResultFile(OUTPUT, path, self._results(refs[OUTPUT]).fetch(path))] if OUTPUT in refs else []
        return Results(files, expected)

    def discard_input(self, ref: str) -> None:
        """There is never any."""

    def ask(self, body: bytes) -> Reply:
        """Sent once: a second one would be paid too."""
        fault: NightmillError
        options: Any = {"headers": self._headers}
        try:
            answer = self._once.post(MESSAGES, cast_to=httpx2.Response, content=body, options=options)
            return Reply(msgspec.Raw(answer.content), answer.status_code)
        except anthropic.APIStatusError as error:
            if error.status_code in _ANSWERED_ALL:
                return Reply(msgspec.Raw(error.response.content or b"null"), error.status_code)
            fault = fault_of(error, "asking for one answer", self._connection, lagging=False)
        except (anthropic.AnthropicError, httpx2.HTTPError) as error:
            fault = fault_of(error, "asking for one answer", self._connection, lagging=False)
        raise fault

    def close(self) -> None:
        self._clients.close()

    def _results(self, provider_id: str) -> ResultStream:
        return ResultStream(self._clients, self._connection, provider_id)

    def _page(self, after: str | None) -> tuple[Mapping[str, Any], timedelta | None]:
        def send() -> httpx2.Response:
            try:
                return self._api.list(after_id=after or anthropic.omit, limit=PAGE_SIZE).http_response
            except anthropic.APIStatusError as error:
                if error.status_code in NO_LISTING:
                    raise NoListingError(f"it has no listing of batches (HTTP {error.status_code})") from None
                raise

        def read(answer: httpx2.Response) -> tuple[Mapping[str, Any], timedelta | None]:
            there = time_in(answer.headers)
            return json_object(answer.content), None if there is None else datetime.now(UTC) - there

        return self._repeatable("listing batches", send, read, lagging=False)

    def _repeatable(
        self,
        doing: str,
        send: Callable[[], httpx2.Response],
        read: Callable[[httpx2.Response], _T],
        *,
        lagging: bool = True,
    ) -> _T:
        fault: NightmillError
        try:
            answer = send()
            self._refuse_other_workspace(answer, doing)
            return read(answer)
        except (anthropic.AnthropicError, httpx2.HTTPError) as error:
            fault = fault_of(error, doing, self._connection, lagging=lagging)
        except MalformedAnswerError as error:
            fault = malformed(str(error), doing, self._connection)
        raise fault

    def _refuse_other_workspace(self, answer: httpx2.Response, doing: str) -> None:
        """A key of another workspace sees none of our batches; that they are not there must not be believed then."""
        wanted, there = workspace_of(self._connection), word(answer.headers.get(WORKSPACE))
        if wanted is not None and there is not None and there != wanted:
            raise ProviderRefused(
                f"Connection {self._connection.conn_id!r} is for workspace {wanted}, and the provider answered for "
                f"workspace {there} while {doing}.",
                "Put a key of that workspace into the connection, or correct `workspace` in its extra.",
                403,
            )


def _snapshot(answer: httpx2.Response) -> Snapshot:
    return batch_snapshot(json_object(answer.content))

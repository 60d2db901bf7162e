"""The port to providers, in our own words: what an adapter is made of.

A *dialect* is the inside of a request and of its answer. A *transport* is how a set of requests travels, and the
envelope around each of them. The same dialect serves several transports. What a transport can do is a value
(`nightmill.domain.capabilities`); where its batches stand is one too (`nightmill.domain.snapshots`). Both keep no state
and touch no database.

An adapter is one folder and one entry point of the group `nightmill.providers` that names an `Adapter`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from nightmill.domain.capabilities import Capabilities
from nightmill.domain.snapshots import BatchStatus, LookupResult, Snapshot
from nightmill.providers.answers import Answer, Failed, Reply, Unreadable, Vector
from nightmill.providers.connection import ProviderConnection, RequestSpec


class Dialect(Protocol):
    """Bodies of one job's requests and answers. It is opened with what all its requests have in common (`RequestSpec`),
    so that a body costs little."""

    takes_schema: bool
    """Whether a response schema goes out in the provider's own form. Where not, the schema stands in the prompt; our
    own check of the answer is the same."""

    def encode(self, messages: Sequence[Mapping[str, str]], max_output: int | None = None) -> bytes:
        """One request body: UTF-8 JSON without a line end. `max_output` is another limit to the answer's tokens than
        the job's. Raises ValueError for text that is not Unicode; its text quotes nothing."""

    def read(self, reply: Reply) -> Answer | Vector | Failed | Unreadable:
        """What one reply says. Never raises: whatever is wrong with it is a value."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A batch that the provider accepted just now. `scopes` are what decides beside the key whose batches are seen, as
    its answer names them."""

    provider_id: str
    raw_status: str
    window_ends_at: datetime | None = None
    results_until: datetime | None = None
    scopes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SentCreate:
    """A create call whose answer was lost, as far as the ledger knows it. `since` is when it went out (UTC), as the
    provider's clock shows it; `account` and `model` as they were sent. `known` are ids of batches that the ledger
    follows already: none of them is it."""

    token: str
    since: datetime
    requests: int
    input_ref: str | None = None
    known: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Listing:
    """Batches that carry a token of ours. `complete` is False when it was not surely read to its end; `why` says what
    it lacks."""

    found: Sequence[Snapshot]
    complete: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class ResultFile:
    """Fetched results: `name` is the one of the snapshot's `result_refs`; `size` is in bytes."""

    name: str
    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class Results:
    """All results of a batch. `expected_lines`: how many lines the provider says that they have; None where it does not
    say."""

    files: Sequence[ResultFile]
    expected_lines: int | None = None


class Transport(Protocol):
    """The synchronous side, used by tasks. Every call raises ProviderUnavailable (try later), ProviderRefused or
    AnswerTooLarge (somebody must act); `create` also raises SubmitUnknown."""

    capabilities: Capabilities
    id_key: str
    """The member of a result line's envelope that holds the record id, so that lines are found without parsing them."""

    def wrap(self, record_id: str, body: bytes) -> bytes:
        """One request in its envelope, as a line that ends in LF."""

    def unwrap(self, line: bytes) -> tuple[str, Reply] | Unreadable:
        """The record id and the reply of one result line (already split at 0x0A, not blank). Never raises."""

    def stage_input(self, path: Path) -> str | None:
        """Bring a file of wrapped requests to the provider and return its reference; None where the create call itself
        carries the requests. Safe to repeat: what is staged and unused costs nothing."""

    def create(self, requests: str | Path, token: str) -> Handle:
        """Create the batch from a staged reference, or from the file itself. Sent exactly once. Options that belong to
        the batch and not to a line (model, task, window) are in the RequestSpec that the transport was opened
        with."""

    def lookup(self, sent: SentCreate) -> LookupResult:
        """Look for the batch of a create call without an answer."""

    def list_ours(self, since: datetime) -> Listing:
        """Every batch that carries a token of nightmill's and was made after `since` (UTC), whoever made it. Only where
        the capabilities say `lists_ours`."""

    def poll(self, provider_id: str) -> Snapshot:
        """The batch as it stands now. "Not found" raises ProviderUnavailable: replicas lag behind, so the caller
        decides when a batch counts as lost."""

    def cancel(self, provider_id: str) -> Snapshot:
        """Ask for cancellation. Cancelling an ended batch is not an error."""

    def results(self, provider_id: str, refs: Mapping[str, str], folder: Path, stem: str) -> Results:
        """Fetch all results into `folder`, as `<stem>.<name>`: each is written beside its path, checked for
        completeness, then renamed. `refs` are the snapshot's `result_refs`."""

    def discard_input(self, ref: str) -> None:
        """Delete a staged input; one that is gone already is not an error."""

    def ask(self, body: bytes) -> Reply:
        """One plain call with one request body, answered at once and paid at the plain price: for trying a prompt.
        What the provider answers to it, an error too, is the reply; what is no answer raises as the other calls."""

    def close(self) -> None:
        """Release connections."""


class BatchWatcher(Protocol):
    """The asynchronous side, used by the triggerer: one listing tells the status of many batches."""

    async def statuses(self, provider_ids: Iterable[str], since: datetime) -> Mapping[str, BatchStatus]:
        """Status by provider id for those that a newest-first listing back to `since` shows. One list call per page;
        ids that are not listed are left out."""

    async def close(self) -> None:
        """Release connections."""


@dataclass(frozen=True, slots=True)
class Routes:
    """Paths of a Batch API that a server does not have, and such as it has but does not list; each with the HTTP status
    of its answer."""

    missing: Mapping[str, int]
    unlisted: Mapping[str, int]


def counts_as_ours(_model: str) -> float:
    """The token factor of a provider whose models count as our own counter does."""
    return 1.0


@dataclass(frozen=True, slots=True)
class Adapter:
    """All that nightmill knows of one provider. Its functions import the vendor's client only when they are called.

    `dialects` is by what job.yaml writes as `provider.task`. `open_watcher` None: the
    shards' own wake-ups look at their batches. The optional parts raise as the calls of a transport do: `list_models`
    the models that the account may use, `missing_routes` what of the Batch API the server lacks, `clock_behind` how far
    its clock is behind ours (None where it does not show it). `token_factor` is how many tokens of a model's come to
    one of our own counter, at the most.
    """

    name: str
    capabilities: Capabilities
    dialects: Mapping[str, Callable[[RequestSpec], Dialect]]
    open_transport: Callable[[ProviderConnection, RequestSpec], Transport]
    open_watcher: Callable[[ProviderConnection], BatchWatcher] | None = None
    list_models: Callable[[ProviderConnection], frozenset[str]] | None = None
    missing_routes: Callable[[ProviderConnection], Routes] | None = None
    clock_behind: Callable[[ProviderConnection], timedelta | None] | None = None
    token_factor: Callable[[str], float] = counts_as_ours

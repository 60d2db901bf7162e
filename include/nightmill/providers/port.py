"""The port to a provider's Batch API: what every adapter must offer, in our own words.

Adapters return normalised values with the raw ones beside them. They keep no state and touch no database. What is made
once per item is a msgspec Struct: a frozen dataclass takes ten times as long to make. None is ever part of a cycle, so
the garbage collector need not walk through them (`gc=False`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import msgspec

from nightmill.domain.failures import Instead


class BatchStatus(StrEnum):
    """Where a provider's batch stands. ENDED means that nothing more will be executed, however it ended."""

    WAITING = "waiting"  # accepted or being validated, nothing executed yet
    RUNNING = "running"  # executing, finalising or being cancelled
    ENDED = "ended"  # completed, expired or cancelled: result files may exist, partial ones too
    FAILED = "failed"  # refused as a whole by the provider's validation: nothing was executed
    UNKNOWN = "unknown"  # a status word this adapter does not know: stop spending, keep the raw value


@dataclass(frozen=True, slots=True)
class Routes:
    """Paths of a Batch API that a server does not have, and such as it has but does not list; each with the HTTP status
    of its answer."""

    missing: Mapping[str, int]
    unlisted: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FileProblem:
    """One complaint of the provider's validation about an input file. `line` is the number of a line: most providers
    count from 1, some from 0; None = whole file. `custom_id` is the request it names beside its message. `param` is
    what it speaks of, such as `completion_window`; empty where it does not say."""

    code: str
    message: str
    line: int | None
    param: str = ""
    custom_id: str | None = None


@dataclass(frozen=True, slots=True)
class BatchSnapshot:
    """A provider's batch as it answered just now. Strings are clean and short, counts can be added up; ids are as they
    are kept (`cleaning.identifier`), and the adapter takes them so."""

    provider_id: str
    status: BatchStatus
    raw_status: str
    input_file_id: str
    token: str | None  # our intent token, read back from the metadata
    created_at: datetime | None  # None when the provider does not say, or not readably
    ended_at: datetime | None  # likewise
    output_file_id: str | None
    error_file_id: str | None
    counts: Mapping[str, int] | None  # the provider's request counts; progress only, never proof
    problems: Sequence[FileProblem]
    raw: Mapping[str, Any]  # what it said, as far as jsonb can hold it

    @property
    def results_pending(self) -> bool:
        """The batch says that it ended, yet a result file that its own counts promise is not named so far.

        Providers do not update their batch objects atomically: poll again for a bounded grace (15 minutes), then take
        what is there. Never a reason to submit again.
        """
        if self.status is not BatchStatus.ENDED or self.output_file_id is not None:
            return False
        counts = self.counts or {}
        if counts.get("completed", 0) > 0:
            return True
        if self.error_file_id is not None:
            return False
        promised = counts.get("failed", 0) > 0
        return promised or (self.raw_status.casefold() == "completed" and counts.get("total") != 0)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a look-up of a submitted batch found. `complete` is False when the listing was not surely read past the time
    that was asked for, `why` says what it lacks: then an empty `found` proves nothing. `listed` is False where the
    provider has no listing at all."""

    found: Sequence[BatchSnapshot]
    complete: bool
    why: str = ""
    listed: bool = True


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Tokens as the provider reports them; None means that it did not say (unknown is not zero).

    `cached_tokens` (read from a prompt cache) and `cache_write_tokens` (written to it) are part of the prompt tokens,
    `reasoning_tokens` are part of the completion tokens. Of usage that cannot be no count is taken: `odd` is what the
    provider wrote.
    """

    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    odd: Mapping[str, Any] | None = None


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A line that carries a model's answer. `text` is None for a refusal or an empty message; `instead` then says what
    the message holds in its place.

    Look at `finish_reason` before `text`: "length" and "content_filter" cut it. `sanitised`: the line was not
    clean Unicode JSON and was read with U+FFFD in place of what was broken.
    """

    custom_id: str
    text: str | None
    refusal: bool
    finish_reason: str | None
    model: str | None
    usage: Usage
    sanitised: bool = False
    instead: Instead = ""


class Embedding(msgspec.Struct, frozen=True, gc=False):
    """A line that carries the vector of an embedding request. `vector` is as the provider sent it: None stands where
    it wrote something that is no number. `sanitised` as in Answer.

    Such an answer has no completion tokens, so where the usage is told they are 0.
    """

    custom_id: str
    vector: Sequence[float | None]
    model: str | None
    usage: Usage
    sanitised: bool = False


@dataclass(frozen=True, slots=True)
class LineError:
    """A line that carries an error instead of an answer. `status` is the inner HTTP status (0 when it has none, also
    where something else than a status stands there).

    `code` is the provider's own, or `provider_unknown` (it failed and does not say why), or
    `provider_protocol_error` (it says 200 and there is no answer in it). `message` is the provider's, cut to 500
    characters; it can quote the request, so it never goes into logs. `type` is the provider's broader word for it.
    """

    custom_id: str
    status: int
    code: str
    message: str
    usage: Usage
    type: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is not what the provider documents. `line` counts from 1 within its file."""

    line: int
    why: str


ResultLine = Answer | Embedding | LineError | Unreadable


@dataclass(frozen=True, slots=True)
class Limits:
    """What one input file and one account may hold at this provider."""

    requests_per_file: int
    bytes_per_file: int
    enqueued_prompt_tokens: int | None


class BatchProvider(Protocol):
    """The synchronous side, used by tasks. Every method raises ProviderUnavailable (try later), ProviderRefused or
    AnswerTooLarge (somebody must act); `submit` also raises SubmitUnknown."""

    limits: Limits

    def request_line(self, custom_id: str, messages: Sequence[Mapping[str, str]]) -> bytes:
        """One encoded request line (unescaped UTF-8 JSON, ends in LF) for this job's endpoint and parameters."""

    def with_output_reserve(self, custom_id: str, messages: Sequence[Mapping[str, str]], tokens: int) -> bytes:
        """The same line with another limit to the answer's tokens, under the parameter that the job limits it by."""

    def upload(self, path: Path) -> str:
        """Upload an input file and return its id. Safe to repeat: an unused upload costs nothing."""

    def submit(self, input_file_id: str, token: str) -> BatchSnapshot:
        """Create the batch. Sent exactly once (no SDK retries); `token` goes into the metadata."""

    def find_submitted(self, input_file_id: str, token: str, since: datetime) -> SearchResult:
        """Look for batches made from this file or carrying this token, paging back to `since` (UTC) as the provider's
        own clock shows it."""

    def list_submitted(self, since: datetime) -> SearchResult:
        """Every batch with a token of nightmill's in its metadata that was made after `since` (UTC), whoever made
        it."""

    def poll(self, provider_id: str) -> BatchSnapshot:
        """The batch as it stands now."""

    def cancel(self, provider_id: str) -> BatchSnapshot:
        """Ask for cancellation. Cancelling an ended batch is not an error."""

    def download(self, file_id: str, path: Path) -> int:
        """Stream a result file to `path` (written beside it, checked for completeness, renamed). Returns bytes."""

    def read_lines(self, lines: Iterable[bytes]) -> Iterator[ResultLine]:
        """Parse raw result lines (already split on 0x0A; blank ones are skipped) of an output or error file."""

    def delete_file(self, file_id: str) -> None:
        """Delete a file; a file that is gone already is not an error."""

    def close(self) -> None:
        """Release connections."""


class BatchWatcher(Protocol):
    """The asynchronous side, used by the triggerer: one listing tells the status of many batches."""

    async def statuses(self, provider_ids: Iterable[str], since: datetime) -> Mapping[str, BatchStatus]:
        """Status by provider id for those that a newest-first listing back to `since` shows. One list call per page;
        ids that are not listed are left out."""

    async def close(self) -> None:
        """Release connections."""

"""Rendering request files from frozen payloads, within every limit of the provider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nightmill.stages.run_shard.record_ids import record_id
from nightmill.stages.run_shard.request_builder import Request, RequestBuilder
from nightmill.stages.run_shard.wake_up import WakeUp
from nightmill.storage import attempts, payloads
from nightmill.storage.attempts import FailedItem
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.session import reading

_BUFFER_BYTES = 1024 * 1024  # the default makes a system call for every few lines


@dataclass(frozen=True, slots=True)
class RequestFile:
    """A rendered file: request lines for `ordinals`, in order. Tokens are prompt tokens.

    `too_long` are items that were passed over, because their line alone is longer than a file may be.
    """

    token: str
    path: Path
    ordinals: list[int]
    prompt_tokens: int
    file_bytes: int
    too_long: list[int] = field(default_factory=list)


def one_file(
    wake_up: WakeUp,
    token: str,
    wanted: Mapping[int, int],
    failed: Mapping[int, FailedItem],
    token_budget: int | None,
    learnt: tuple[int | None, int | None] = (None, None),
) -> RequestFile:
    """Render the first of the wanted items (ordinal -> prompt tokens) that fit into one file.

    At least one item is taken, so that a giant gets a file of its own. `learnt` are the most bytes and requests that a
    refusal taught: a guess, so that an item beyond it is sent all the same. Memory: one payload segment.
    """
    limits = wake_up.limits
    most_bytes = min(limits.bytes_per_file, learnt[0] or limits.bytes_per_file)
    most_requests = min(limits.requests_per_file, learnt[1] or limits.requests_per_file)
    path = wake_up.directory / f"{token}.jsonl"
    ordinals: list[int] = []
    too_long: list[int] = []
    size = tokens = 0
    with path.open("wb", _BUFFER_BYTES) as file:
        for ordinal, request in _requests(wake_up, token, wanted, failed):
            if len(request.line) > limits.bytes_per_file:
                too_long.append(ordinal)
                continue
            full = (
                len(ordinals) >= most_requests
                or size + len(request.line) > most_bytes
                or (token_budget is not None and tokens + request.prompt_tokens > token_budget)
            )
            if full and ordinals:
                break
            file.write(request.line)
            ordinals.append(ordinal)
            size += len(request.line)
            tokens += request.prompt_tokens
    return RequestFile(token, path, ordinals, tokens, size, too_long)


def rerender(wake_up: WakeUp, one: ProviderBatch) -> RequestFile:
    """The same file once more, after a worker died before its upload was recorded."""
    wanted = dict.fromkeys(one.carries(), 0)
    with reading(wake_up.conn):
        failed = attempts.failed_items(wake_up.conn, one.batch_id, one.ordinals)
    path = wake_up.directory / f"{one.token}.jsonl"
    with path.open("wb", _BUFFER_BYTES) as file:
        for _, request in _requests(wake_up, one.token, wanted, failed):
            file.write(request.line)
    return RequestFile(one.token, path, list(wanted), one.prompt_tokens, path.stat().st_size)


def _requests(
    wake_up: WakeUp, token: str, wanted: Mapping[int, int], failed: Mapping[int, FailedItem]
) -> Iterator[tuple[int, Request]]:
    builder = RequestBuilder(wake_up, {ordinal: one for ordinal, one in failed.items() if ordinal in wanted})
    documents = payloads.Documents(wake_up.conn, wake_up.env.payloads, wake_up.batch.batch_id)
    for ordinal, tokens in wanted.items():
        yield ordinal, builder.request(record_id(token, ordinal), ordinal, tokens, documents.of(ordinal))

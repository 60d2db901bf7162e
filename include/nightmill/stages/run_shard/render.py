"""Rendering request files from frozen payloads, within every limit of the provider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nightmill.domain.errors import Terminal
from nightmill.stages.run_shard.context import ShardContext
from nightmill.storage import payloads
from nightmill.storage.provider_batches import ProviderBatch


@dataclass(frozen=True, slots=True)
class RequestFile:
    """A rendered file: request lines for `ordinals`, in order. Tokens are prompt tokens."""

    token: str
    path: Path
    ordinals: list[int]
    prompt_tokens: int
    file_bytes: int


def custom_id(token: str, ordinal: int) -> str:
    """Names one request line. Unique across files, [A-Za-z0-9_-] and short, as every provider wants it."""
    return f"{token}-{ordinal}"


def ordinal_of(token: str, name: str) -> int | None:
    """The item that a result line belongs to, or None for a foreign id."""
    prefix, _, number = name.rpartition("-")
    return int(number) if prefix == token and number.isascii() and number.isdigit() else None


def one_file(context: ShardContext, token: str, wanted: Mapping[int, int], token_budget: int | None) -> RequestFile:
    """Render the first of the wanted items (ordinal -> prompt tokens) that fit into one file.

    At least one item is taken, so that a giant gets a file of its own. Memory: one payload segment.
    """
    limits = context.limits
    path = context.directory / f"{token}.jsonl"
    ordinals: list[int] = []
    size = tokens = 0
    with path.open("wb") as file:
        for ordinal, line in _lines(context, token, wanted):
            full = (
                len(ordinals) >= limits.requests_per_file
                or size + len(line) > limits.bytes_per_file
                or (token_budget is not None and tokens + wanted[ordinal] > token_budget)
            )
            if full and ordinals:
                break
            if len(line) > limits.bytes_per_file:
                raise Terminal(
                    f"Item {ordinal} alone makes a request line of {len(line)} bytes, above the provider's file limit "
                    f"of {limits.bytes_per_file}.",
                    "Set provider.context_window_tokens, so that such items are not sent, or shorten the text in the "
                    "source query.",
                )
            file.write(line)
            ordinals.append(ordinal)
            size += len(line)
            tokens += wanted[ordinal]
    return RequestFile(token, path, ordinals, tokens, size)


def again(context: ShardContext, one: ProviderBatch) -> RequestFile:
    """The same file once more, after a worker died before its upload was recorded."""
    wanted = dict.fromkeys(one.carries(), 0)
    path = context.directory / f"{one.token}.jsonl"
    with path.open("wb") as file:
        for _, line in _lines(context, one.token, wanted):
            file.write(line)
    return RequestFile(one.token, path, list(wanted), one.prompt_tokens, path.stat().st_size)


def _lines(context: ShardContext, token: str, wanted: Mapping[int, int]) -> Iterator[tuple[int, bytes]]:
    first, last = next(iter(wanted)), next(reversed(list(wanted)))
    for ordinal, values in payloads.read_range(context.conn, context.env.payloads, context.batch.batch_id, first, last):
        if ordinal in wanted:
            messages = context.pinned.prompt.render(values)
            yield ordinal, context.provider.request_line(custom_id(token, ordinal), messages)

"""Noticing, before anything is settled, that every line of a file failed in the same way.

A parameter that the model does not take fails each line by itself. A million dead letters would hide that it is one
mistake, so the first file of that kind stops the batch instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from nightmill.domain.failures import FailureClass, classify_line_error
from nightmill.providers.port import LineError, ResultLine
from nightmill.providers.result_files import split_lines
from nightmill.stages.run_shard.context import ShardContext
from nightmill.storage import settlement
from nightmill.storage.provider_batches import ProviderBatch

FEWEST = 10  # of fewer items, each may well be wrong by itself
_WINDOW = 24  # characters; a message that shares as many with the prompt may quote it
_MOST_SHOWN = 200


def all_failed_alike(context: ShardContext, one: ProviderBatch, files: Sequence[Path]) -> str | None:
    """What each line of a first provider batch failed with, for an error message; None when anything differs.

    First: nothing of the batch was accepted so far, and none of these items was asked for before.
    """
    if one.requests < FEWEST or not settlement.untried(context.conn, one):
        return None
    codes: set[str] = set()
    messages: set[str] = set()
    lines = 0
    for line in _lines(context, files):
        if not isinstance(line, LineError):
            return None
        failure = classify_line_error(line.status, line.code, line.message, line.type)
        if failure.kind is not FailureClass.INPUT:
            return None
        codes.add(failure.code)
        if len(messages) < 2:
            messages.add(failure.message)
        lines += 1
        if len(codes) > 1:
            return None
    if lines < one.requests:
        return None
    [code] = codes
    return (
        f"{code}: {_shown(messages.pop(), context.pinned.files['prompt.md'].decode())}" if len(messages) == 1 else code
    )


def _lines(context: ShardContext, files: Sequence[Path]) -> Iterator[ResultLine]:
    for path in files:
        yield from context.provider.read_lines(split_lines(path))


def _shown(message: str, prompt: str) -> str:
    """A message that is the same for all documents quotes none of them; it may still quote the prompt."""
    quotes = any(message[at : at + _WINDOW] in prompt for at in range(max(1, len(message) - _WINDOW + 1)))
    return "(its message repeats the prompt)" if quotes else message[:_MOST_SHOWN]

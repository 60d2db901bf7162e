"""Where the lines of a result file stand, found without parsing what need not be parsed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nightmill.providers.answers import Unreadable
from nightmill.providers.provider import Provider
from nightmill.stages.run_shard.record_ids import in_raw_lines, ordinal_of

LAST = 2**62  # sorts lines without a readable id after all others


def places(path: Path, token: str, provider: Provider) -> Iterator[tuple[int, int, int]]:
    """(ordinal, offset, length) of each line that is not blank, as they stand in the file; `LAST` for an unreadable or
    foreign id. Only a line whose id is not written as nearly all servers do is parsed for it."""
    search = in_raw_lines(token, provider.transport.id_key).search
    offset = 0
    with path.open("rb") as file:
        for raw in file:
            if not raw.isspace():
                found = search(raw)
                ordinal = int(found[1]) if found else _parsed(raw, token, provider)
                yield LAST if ordinal is None else ordinal, offset, len(raw)
            offset += len(raw)


def spoken_of(path: Path, token: str, provider: Provider) -> Iterator[int | None]:
    """For each line that is not blank the ordinal that it speaks of; LAST for somebody else's, None for a line that
    cannot be read.

    A line that was cut has more braces opened than closed, so only one whose braces do not pair is parsed.
    """
    search = in_raw_lines(token, provider.transport.id_key).search
    with path.open("rb") as file:
        for raw in file:
            if raw.isspace():
                continue
            found = search(raw)
            looks_whole = raw.rstrip().endswith(b"}") and raw.count(b"{") == raw.count(b"}")
            yield int(found[1]) if found and looks_whole else _parsed(raw, token, provider)


def _parsed(raw: bytes, token: str, provider: Provider) -> int | None:
    for line in provider.read_lines([raw.rstrip(b"\r\n")]):
        if not isinstance(line, Unreadable):
            ordinal = ordinal_of(token, line.record_id)
            return LAST if ordinal is None else ordinal
    return None

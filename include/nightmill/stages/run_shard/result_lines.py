"""Where each item's line stands in a result file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nightmill.stages.run_shard.custom_ids import in_raw_lines

LAST = 2**62  # sorts lines without a readable id after all others


def places(path: Path, token: str) -> Iterator[tuple[int, int, int]]:
    """(ordinal, offset, length) of each line that is not blank, as they stand in the file; `LAST` for an unreadable or
    foreign id."""
    search = in_raw_lines(token).search
    offset = 0
    with path.open("rb") as file:
        for raw in file:
            if not raw.isspace():
                found = search(raw)
                yield int(found[1]) if found else LAST, offset, len(raw)
            offset += len(raw)

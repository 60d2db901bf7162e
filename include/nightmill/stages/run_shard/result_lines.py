"""Where each item's line stands in a result file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from nightmill.stages.run_shard.custom_ids import ordinal_of

LAST = 2**62  # sorts lines without a readable id after all others
_CUSTOM_ID = re.compile(rb'"custom_id"\s*:\s*"([^"\\]*)"')


def places(path: Path, token: str) -> Iterator[tuple[int, int, int]]:
    """(ordinal, offset, length) of each line, as they stand in the file; `LAST` for an unreadable id."""
    offset = 0
    with path.open("rb") as file:
        for raw in file:
            found = _CUSTOM_ID.search(raw)
            ordinal = ordinal_of(token, found.group(1).decode("utf-8", "replace")) if found else None
            yield ordinal if ordinal is not None else LAST, offset, len(raw)
            offset += len(raw)

"""Figures that tests measure: shown together at the end of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator

NOTED: list[str] = []


def note(line: str) -> None:
    """Show a line under `figures` when the run ends."""
    NOTED.append(line)


def series(seconds: float = 60) -> Iterator[int]:
    """Numbers of tries to measure something: a busy machine spoils some of them, what is too slow spoils all. At least
    three, and further ones while the time lasts; the caller stops at the first that is good."""
    until = time.monotonic() + seconds
    number = 0
    while number < 3 or time.monotonic() < until:
        yield number
        number += 1

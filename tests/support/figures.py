"""Figures that tests measure: shown together at the end of a run."""

from __future__ import annotations

NOTED: list[str] = []


def note(line: str) -> None:
    """Show a line under `figures` when the run ends."""
    NOTED.append(line)

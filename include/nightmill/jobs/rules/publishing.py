"""Whether a run's result replaces what everybody reads, as its trigger form asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from nightmill.jobs.filters import Filter


class Publishing(StrEnum):
    """Of a run. AUTO is decided when the run's batch is opened; the params of a batch that is a preview keep NO."""

    AUTO = "auto"
    YES = "yes"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Decision:
    """YES or NO. `narrowed` says in words what makes the run see less than the job declares; empty where nothing
    does."""

    publish: Publishing
    narrowed: str


def decide(
    asked: str, filters: Mapping[str, Filter], chosen: Mapping[str, Any], limit: int | None, *, by_hand: bool
) -> Decision:
    """A run by hand that sees only a part of the source is a preview unless its form says otherwise. `chosen` are the
    filters' values as the query gets them."""
    narrowed = [f"a limit of {limit:,} rows"] if limit is not None else []
    others = [name for name, one in filters.items() if chosen[name] != one.default]
    if others:
        narrowed.append(f"{', '.join(others)} chosen otherwise than declared")
    preview = bool(narrowed) and by_hand if asked == Publishing.AUTO else asked == Publishing.NO
    return Decision(Publishing.NO if preview else Publishing.YES, " and ".join(narrowed))

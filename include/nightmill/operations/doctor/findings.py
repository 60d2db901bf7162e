"""What a check comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from nightmill.domain.errors import NightmillError

_LOOK = "Look at the message of this kind of error; if it stays unclear, report it with the version of nightmill."


class Status(StrEnum):
    """How a check ended. Only FAILED makes the command fail."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was seen, and what to do about it unless it is ok."""

    check: str
    status: Status
    seen: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Doubt:
    """What a check saw when it ends with a warning."""

    seen: str
    remedy: str


Look = Callable[[], "str | Doubt"]


def attempt(check: str, look: Look) -> Finding:
    """Run one check. Messages of foreign errors can hold addresses with passwords: only their kind is told."""
    try:
        seen = look()
    except NightmillError as fault:
        return Finding(check, Status.FAILED, fault.cause, fault.remedy)
    except Exception as fault:
        return Finding(check, Status.FAILED, f"ended with {type(fault).__name__}", _LOOK)
    if isinstance(seen, Doubt):
        return Finding(check, Status.WARNING, seen.seen, seen.remedy)
    return Finding(check, Status.OK, seen)

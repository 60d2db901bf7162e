"""Priority: who sends first when an account's enqueued-token limit is short."""

from __future__ import annotations

from enum import StrEnum


class Priority(StrEnum):
    """Of a run. LOW keeps half of the limit free for the others; nothing else differs."""

    NORMAL = "normal"
    LOW = "low"


def room_for(priority: str, enqueued_limit: int | None) -> int | None:
    """Up to how many enqueued prompt tokens of the account a run sends; None = no limit is known."""
    if enqueued_limit is None or priority != Priority.LOW:
        return enqueued_limit
    return max(1, enqueued_limit // 2)

"""What went wrong, as a value: the class decides what happens next.

`classification` decides the class of what a provider does, by the rules in `failure_rules`. What our own checks find
has the class that each check declares (checks/registry.py). docs/reference/failures.md is written from both. Messages
are the provider's or ours, cut to `MESSAGE_LIMIT` characters; they are kept in the ledger only and never logged,
because a provider may quote the document in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

MESSAGE_LIMIT = 500


class Action(StrEnum):
    """What nightmill does about a failure."""

    RETRY = "retry"
    WAIT = "wait"
    GIVE_UP = "give up"
    REPAIR = "repair"
    WRITE_AGAIN = "write again"
    ASK = "ask a person"
    EXCLUDE = "leave out"  # of an input: no request, no row and no dead letter


Instead = Literal["", "reasoning", "tool_calls"]
EndedAs = Literal["dead_lettered", "in_review"]
"""The outcome of an item without an answer: it gave up, or a person is to look at what the model made of it."""


class FailureClass(StrEnum):
    """Why an attempt failed, by what can be done about it."""

    TRANSIENT = "transient"  # trying again can help: rate limits, server errors, lost or expired lines
    CAPACITY = "capacity"  # budgets, quotas, queues: wait, never the item's fault
    INPUT = "input"  # the request itself cannot be served
    OUTPUT = "output"  # an answer came that the contract does not accept
    POLICY = "policy"  # refused or filtered by a rule
    SINK = "sink"  # our own database or object store
    UNKNOWN = "unknown"  # a state that nobody knows; never an item's

    @property
    def action(self) -> Action:
        return _ACTIONS[self]

    @property
    def spends_retry_budget(self) -> bool:
        """Waiting for capacity or for a person never counts against an item."""
        return self not in (FailureClass.CAPACITY, FailureClass.UNKNOWN)


_ACTIONS = {
    FailureClass.TRANSIENT: Action.RETRY,
    FailureClass.CAPACITY: Action.WAIT,
    FailureClass.INPUT: Action.GIVE_UP,
    FailureClass.OUTPUT: Action.REPAIR,
    FailureClass.POLICY: Action.GIVE_UP,
    FailureClass.SINK: Action.WRITE_AGAIN,
    FailureClass.UNKNOWN: Action.ASK,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt. `code` is a stable machine word, `message` is for the dead letter only. `action` overrules
    what the class says."""

    kind: FailureClass
    code: str
    message: str
    action: Action | None = None

    @property
    def retryable(self) -> bool:
        """Whether another attempt is worth its price (within the job's cap)."""
        return (self.action or self.kind.action) in (Action.RETRY, Action.REPAIR)

    @property
    def asks_a_person(self) -> bool:
        """Whether the item ends in review: a check put it there, whatever its class says."""
        return self.action is Action.ASK

    @property
    def spends_retry_budget(self) -> bool:
        return self.kind.spends_retry_budget


def does_not_fit() -> Failure:
    """An answer that its model accepts and the view's columns cannot hold, such as a time zone beyond 16 hours."""
    return Failure(FailureClass.OUTPUT, "does_not_fit_column", "the answer does not fit the view's columns")

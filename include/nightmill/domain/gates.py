"""The gates between a result and its readers, in the order in which a run passes them, and what a gate can say."""

from __future__ import annotations

from enum import StrEnum


class GateName(StrEnum):
    """As the ledger calls them. A member's place is its place in the run."""

    COMPLETION = "completion"  # looked at by the task reconcile
    CHECK_STAGING = "check_staging"
    COMPARE = "compare"
    APPROVE = "approve"

    @property
    def task(self) -> str:
        """The task that looks at it: what a person clears."""
        return "reconcile" if self is GateName.COMPLETION else str(self)


class Word(StrEnum):
    """What a gate said. PASSED and, where the job does not have the gate, NOT_CONFIGURED open it."""

    PASSED = "passed"
    REFUSED = "refused"  # until somebody mends it and clears the gate's task
    WAITING = "waiting"  # for a person's answer
    REJECTED = "rejected"  # for good: the batch has ended
    NOT_CONFIGURED = "not configured"


GATES = tuple(GateName)

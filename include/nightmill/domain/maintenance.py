"""What maintenance does, and what it tells people."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Sweep(StrEnum):
    """The sweeps, in the order in which they run: what one of them cancels the next one winds down."""

    ABANDONED = "abandoned"  # open runs of which nothing was seen for the job's grace time are cancelled
    CANCELLED = "cancelled"  # what cancelled batches have at the provider is stopped, collected and kept for reuse
    STUCK = "stuck"  # provider batches and shards of open batches past the deadline of their state
    ORPHANS = "orphans"  # batches at the provider that carry our token and that the ledger does not follow
    RETENTION = "retention"  # raw files, payloads, dead letters and partitions that nobody needs any more


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that was done, or would be on a dry run. `alert`: a person should look. Ids and counts only."""

    sweep: Sweep
    what: str
    batch_id: int | None = None
    alert: bool = False

    def __str__(self) -> str:
        batch = "" if self.batch_id is None else f"batch {self.batch_id}: "
        return f"{self.sweep}: {batch}{self.what}"

"""What maintenance does, and what it tells people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from nightmill.domain.errors import NightmillError, StaleWriter, Terminal, Transient
from nightmill.domain.foreign_faults import described
from nightmill.domain.wording import pluralised


class Sweep(StrEnum):
    """The sweeps, in the order in which they run: what one of them cancels the next one winds down."""

    ABANDONED = "abandoned"  # open runs of which nothing was seen for the job's grace time are cancelled
    CANCELLED = "cancelled"  # what cancelled batches have at the provider is stopped, collected and kept for reuse
    STUCK = "stuck"  # provider batches and shards of open batches past the deadline of their state
    ORPHANS = "orphans"  # batches at the provider that carry our token and that the ledger does not follow
    MERGING = "merging"  # old parts of views are merged, and parts that no publication needs taken away
    RETENTION = "retention"  # raw files, payloads, dead letters and partitions that nobody needs any more


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that was done, or would be on a dry run. `alert`: a person should look. `failed`: it could not be done;
    without an alert, it may go by itself the next time. Ids and counts only."""

    sweep: Sweep
    what: str
    batch_id: int | None = None
    alert: bool = False
    failed: bool = False

    def __str__(self) -> str:
        batch = "" if self.batch_id is None else f"batch {self.batch_id}: "
        return f"{self.sweep}: {batch}{self.what}"


def not_done(
    sweep: Sweep, fault: Exception, batch_id: int | None = None, unit: str = "", *, passed_by: str | None = None
) -> Action:
    """What a sweep says of one job, batch or shard at which it failed. `unit` names it where no batch does."""
    said = fault.cause if isinstance(fault, NightmillError) else described(fault, passed_by=passed_by)
    stale = isinstance(fault, StaleWriter)  # the sweep beside this one goes on
    passes = stale or isinstance(fault, Transient)
    return Action(sweep, f"{unit}: {said}" if unit else said, batch_id, alert=not passes, failed=not stale)


def refuse_failed(done: Iterable[Action]) -> None:
    """Raise where a sweep did not do all of its work: Transient if all of that may go by itself, else Terminal."""
    failed = [one for one in done if one.failed]
    if not failed:
        return
    kind = Terminal if any(one.alert for one in failed) else Transient
    raise kind(
        f"{pluralised(len(failed), 'part')} of this sweep failed; the others were done. The first one: {failed[0]}",
        "Mend what each of them names (select * from nightmill.maintenance_action where alert order by action_id "
        "desc); the next sweep tries again.",
    )

"""The gates, in the order of a run, and which of them are still closed for a batch."""

from __future__ import annotations

from typing import Any

from nightmill.domain.errors import Blocked
from nightmill.domain.gates import GateName, Word
from nightmill.domain.wording import batches_named
from nightmill.gates import approve, baseline, basis, checks, compare, completion
from nightmill.gates.port import Gate
from nightmill.jobs.contract import JobDefinition
from nightmill.storage import gates
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

_BEFORE_APPROVAL: tuple[Gate, ...] = (completion.GATE, checks.GATE, compare.GATE)
GATES: tuple[Gate, ...] = (*_BEFORE_APPROVAL, approve.question(_BEFORE_APPROVAL))


def named(name: GateName) -> Gate:
    """One of them."""
    return next(one for one in GATES if one.name is name)


def approval(clears: int) -> Gate:
    """approve, for a task with this max_tries."""
    return approve.question(_BEFORE_APPROVAL, clears)


def of_job(live: JobDefinition, *, preview: bool = False) -> list[GateName]:
    """The gates that a job has; for a preview those that it must pass before a person looks at it."""
    return [one.name for one in GATES if one.applies(live) and (one.for_previews or not preview)]


def admit(conn: Connection, live: JobDefinition, batch: Batch) -> str | None:
    """Raise Blocked unless each gate that the job has passed this generation, and what it looked at is still so.
    Returns who approved the batch, or what did for them; None where the job asks nobody."""
    wanted = of_job(live, preview=batch.is_preview)
    newest = {one.gate: one for one in gates.newest(conn, batch.holder) if one.word is Word.PASSED}
    if missing := [one for one in wanted if one not in newest]:
        raise Blocked(
            f"Batch {batch.batch_id} has no recorded pass of {', '.join(missing)} in generation {batch.generation}.",
            f"Clear {missing[0].task} and its downstream tasks: marking it as success opens nothing.",
        )
    if not batch.is_preview:
        _refuse_moved(conn, batch, {one: newest[one].details for one in wanted})
    return newest[GateName.APPROVE].decided_by if GateName.APPROVE in wanted else None


def _refuse_moved(conn: Connection, batch: Batch, details: dict[GateName, dict[str, object]]) -> None:
    taken = details.get(GateName.COMPLETION, {}).get(completion.PREVIOUS_OF)
    if taken is not None and taken != (now := completion.previous_of(conn, batch)):
        raise Blocked(
            f"Gaps of batch {batch.batch_id} are shown as the rows of {_named(taken)}, and results.{batch.view_name} "
            f"shows {_named(now)} in its place now.",
            "Clear reconcile and its downstream tasks.",
        )
    compared, shown = details.get(GateName.COMPARE, {}), baseline.of(conn, batch)
    if baseline.KEY in compared and compared[baseline.KEY] != shown:
        raise Blocked(
            f"compare looked at batch {batch.batch_id} beside {_named(compared[baseline.KEY])}, and "
            f"results.{batch.view_name} shows {_named(shown)} now.",
            "Clear compare and its downstream tasks.",
        )
    approved = details.get(GateName.APPROVE, {})
    if approved and approved.get(basis.KEY) != basis.of(conn, batch):
        raise Blocked(
            f"The approval of batch {batch.batch_id} was given for other verdicts, or beside another result than "
            f"results.{batch.view_name} shows now.",
            "Clear approve and its downstream tasks: the person is asked again.",
        )


def _named(batches: Any) -> str:
    return batches_named(batches if isinstance(batches, list) else [] if batches is None else [batches])

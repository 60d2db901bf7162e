"""compare: two batches of one job side by side, whatever differs between them: the model, the prompt, the provider."""

from __future__ import annotations

from nightmill.domain.comparison import ALL
from nightmill.domain.errors import Terminal
from nightmill.domain.states import BatchState
from nightmill.gates import comparing
from nightmill.gates.comparing import Comparison
from nightmill.jobs.settings.gate_settings import Compare
from nightmill.services.environment import Environment
from nightmill.storage import batches, comparison, contracts
from nightmill.storage.batches import Batch


def run(env: Environment, old: int, new: int) -> Comparison:
    """Compare `new` with `old` in one snapshot, by the settings that `new` was frozen with. Raises Terminal where one
    of them cannot be compared."""
    with env.ledger() as conn:
        comparing.snapshot(conn)
        first, second = batches.get(conn, old), batches.get(conn, new)
        _refuse_others(first, second)
        for batch in (first, second):
            _refuse_open(batch)
        job = contracts.load(conn, second.contract_id).job
        sides = comparison.of_batches(conn, second.view_name, new, old)
        made = comparing.compare(env, conn, job.compare or Compare(), job.gold, sides)
    whole = made.parts[ALL]
    for batch, side in ((first, whole.old), (second, whole.new)):
        if batch.item_count and side.items == 0:
            raise Terminal(
                f"Retention has deleted the items of batch {batch.batch_id}.", "Compare batches that are kept whole."
            )
    return made


def _refuse_others(first: Batch, second: Batch) -> None:
    if first.batch_id == second.batch_id:
        raise Terminal(f"Both are batch {first.batch_id}.", "Name two: `python -m nightmill status` lists them.")
    if first.view_name != second.view_name:
        raise Terminal(
            f"Batch {first.batch_id} is of results.{first.view_name}, batch {second.batch_id} of "
            f"results.{second.view_name}.",
            "Compare two batches of one view.",
        )


def _refuse_open(batch: Batch) -> None:
    if batch.dry_run:
        raise Terminal(f"Batch {batch.batch_id} was a dry run: it has no answers.", "Compare batches that have run.")
    settled = batch.counts is not None or batch.state in (BatchState.CANCELLED, BatchState.PARTIAL_FAILED)
    if not settled:
        raise Terminal(
            f"Batch {batch.batch_id} is {batch.state} ({batch.state_reason}): items of it are still open.",
            "Wait until it is reconciled: `python -m nightmill status` shows how far it is.",
        )

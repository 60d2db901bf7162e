"""reconcile: the manifest against the outcomes. Every planned item stands in exactly one bucket, or the task fails and
names the shards that are not done."""

from __future__ import annotations

import logging

from nightmill.domain.errors import Terminal
from nightmill.domain.states import BatchState
from nightmill.gates import completion, driver
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.rules.gaps import decide, facts, told
from nightmill.services.environment import Environment
from nightmill.storage import batches, gaps, partitions, shards
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

log = logging.getLogger(__name__)


def run(env: Environment, live: JobDefinition, batch_id: int) -> Batch:
    """Count, move on to VALIDATING, write what stands in for gaps, and ask the completion gate: gaps that the job does
    not allow end the batch."""
    with env.ledger() as conn:
        batch = batches.get(conn, batch_id)
        batches.refuse_without_data(batch)
        if batch.at_rest:
            log.info("batch %s is %s: %s", batch_id, batch.state, batch.state_reason)
            return batch
        batch = batches.unblock(conn, batch, "reconcile")
        counts = batches.bucket_counts(conn, batch_id)
        conn.commit()
        if counts.get("unsettled"):
            _refuse_unsettled(conn, batch, counts["unsettled"])
        partitions.index(conn, f"rows_{batch.view_name}", batch_id)
        conn.commit()
        _to_validating(conn, batch, counts)
        _show_gaps(env, conn, live, batches.get(conn, batch_id))
    driver.run(env, live, batch_id, completion.GATE)
    with env.ledger() as conn:
        return batches.get(conn, batch_id)


def _refuse_unsettled(conn: Connection, batch: Batch, unsettled: int) -> None:
    open_shards = [label.shard_id for label in shards.labels(conn, batch.batch_id)]
    raise Terminal(
        f"Batch {batch.batch_id}: {unsettled} items are not settled; open shards: "
        f"{', '.join(map(str, open_shards)) or 'none'}.",
        "Clear run_shard of these shards (a task that was marked as success settles nothing).",
    )


def _to_validating(conn: Connection, batch: Batch, counts: dict[str, int]) -> None:
    if batch.state is not BatchState.VALIDATING:
        batch = batches.move(conn, batch, BatchState.VALIDATING, "every item is settled")
    batches.record_counts(conn, batch, counts)
    conn.commit()


def _show_gaps(env: Environment, conn: Connection, live: JobDefinition, batch: Batch) -> None:
    """Rows are written for a batch that readers may see only."""
    counts = batch.counts or {}
    decision = decide(live.job.gaps, counts, gaps.of_batch(conn, batch.batch_id))
    shown = gaps.show(conn, batch, decision.ruled if decision.allowed else ())
    found = facts(decision, batch.job, batch.batch_id, counts, shown, env.now())
    gaps.record(conn, batch, found)
    conn.commit()
    for line in told(found):
        log.info("batch %s: %s", batch.batch_id, line)

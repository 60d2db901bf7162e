"""reconcile: the manifest against the outcomes. Every planned item stands in exactly one bucket, or the task fails and
names the shards that are not done."""

from __future__ import annotations

import logging
from typing import Any

from nightmill.domain.contract import JobDefinition
from nightmill.domain.errors import Terminal
from nightmill.domain.keys import content_hash
from nightmill.domain.states import BatchState
from nightmill.environment import Environment
from nightmill.storage import batches, gates, partitions, shards
from nightmill.storage.batches import Batch
from nightmill.storage.ledger import Connection

log = logging.getLogger(__name__)


def run(env: Environment, live: JobDefinition, batch_id: int) -> Batch:
    """Count, record the completion gate, and move on to VALIDATING; gaps beyond the job's limit end the batch."""
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
        batch = _to_validating(conn, batch, counts)
        return _judge(conn, batch, live, counts)


def _refuse_unsettled(conn: Connection, batch: Batch, unsettled: int) -> None:
    open_shards = [label.shard_id for label in shards.labels(conn, batch.batch_id)]
    raise Terminal(
        f"Batch {batch.batch_id}: {unsettled} items are not settled; open shards: "
        f"{', '.join(map(str, open_shards)) or 'none'}.",
        "Clear run_shard of these shards (a task that was marked as success settles nothing).",
    )


def _to_validating(conn: Connection, batch: Batch, counts: dict[str, int]) -> Batch:
    if batch.state is not BatchState.VALIDATING:
        batch = batches.move(conn, batch, BatchState.VALIDATING, "every item is settled")
    batches.record_counts(conn, batch, counts)
    conn.commit()
    return batches.get(conn, batch.batch_id)


def _judge(conn: Connection, batch: Batch, live: JobDefinition, counts: dict[str, int]) -> Batch:
    """Hold the completion rate against the job's limit, which is read live."""
    rate = completion_rate(counts)
    wanted = live.job.quality.min_completion_rate
    gaps = dict(batches.gaps_by_code(conn, batch.batch_id))
    details: dict[str, Any] = {"completion_rate": rate, "min_completion_rate": wanted, "counts": counts, "gaps": gaps}
    passed = rate >= wanted
    gates.record(conn, batch.holder, "completion", passed, details, content_hash({"min": wanted}).hex()[:16])
    conn.commit()
    log.info("batch %s: completion rate %.4f (at least %.4f), %s", batch.batch_id, rate, wanted, counts)
    if passed:
        return batch
    batches.move(conn, batch, BatchState.PARTIAL_FAILED, f"completion rate {rate:.4f} is below {wanted:.4f}")
    conn.commit()
    raise Terminal(
        f"Batch {batch.batch_id}: completion rate {rate:.4f} is below quality.min_completion_rate {wanted:.4f}; gaps "
        f"by code: {gaps}. The view stays where it was.",
        "Trigger a new run: accepted items are reused without a call and transient gaps are sent again. For the other "
        "gaps correct the prompt or the output model, or allow them in quality.min_completion_rate. Clearing "
        "freeze_snapshot does the same in this run. They are listed by `python -m nightmill dead-letters --batch "
        f"{batch.batch_id} --count`.",
    )


def completion_rate(counts: dict[str, int]) -> float:
    """(accepted + reused) / (planned - excluded); 1 when nothing was to be done."""
    good = counts.get("accepted", 0) + counts.get("reused", 0)
    planned = sum(counts.values()) - counts.get("excluded", 0)
    return good / planned if planned else 1.0

"""preflight: prices the plan and hands the shards to run_shard; a dry run ends here with the estimate."""

from __future__ import annotations

import logging

from nightmill.domain.contract import JobDefinition
from nightmill.domain.estimate import described, estimate
from nightmill.domain.pricing import price_on
from nightmill.domain.priority import room_for
from nightmill.domain.states import BatchState
from nightmill.environment import Environment
from nightmill.storage import batches, contracts, fence, prices, shards
from nightmill.storage.batches import Batch
from nightmill.storage.ledger import Connection
from nightmill.storage.shards import ShardLabel

log = logging.getLogger(__name__)


def run(env: Environment, live: JobDefinition, batch_id: int) -> list[ShardLabel]:
    """The shards that run_shard maps over: none on a dry run, after the end, or when everything was reused."""
    with env.ledger() as conn:
        batch = batches.get(conn, batch_id)
        batches.refuse_without_data(batch)
        if batch.at_rest:
            log.info("batch %s is %s: %s", batch_id, batch.state, batch.state_reason)
            return []
        open_shards = list(shards.labels(conn, batch_id))
        if batch.state is BatchState.QUEUED:
            pinned = contracts.load(conn, batch.contract_id)
            _price(env, conn, batch, pinned, live, open_shards)
        if batch.dry_run and batch.state is BatchState.QUEUED:
            batches.move(conn, batch, BatchState.ESTIMATED, "dry run")
            conn.commit()
            return []
        return open_shards


def _price(
    env: Environment,
    conn: Connection,
    batch: Batch,
    pinned: JobDefinition,
    live: JobDefinition,
    open_shards: list[ShardLabel],
) -> None:
    provider = pinned.job.provider
    price = price_on(prices.of_model(conn, provider.model), provider.model, env.now().date())
    worked_out = estimate(
        planned=batch.item_count or 0,
        to_send=sum(shard.items for shard in open_shards),
        reused=batches.bucket_counts(conn, batch.batch_id).get("reused", 0),
        shards=len(open_shards),
        prompt_tokens=sum(shard.prompt_tokens for shard in open_shards),
        output_reserve=provider.output_reserve_tokens,
        price=price,
        enqueued_cap=room_for(batch.priority, live.job.provider.limits.enqueued_prompt_tokens),
        turnaround_s=live.job.provider.expected_turnaround_s,
    )
    fence.enter(conn, batch.holder)
    batches.record_estimate(conn, batch, worked_out.as_json())
    conn.commit()
    for line in described(worked_out, env.now()):
        log.info("batch %s: %s", batch.batch_id, line)

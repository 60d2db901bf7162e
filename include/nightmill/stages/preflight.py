"""preflight: prices the plan and hands the shards to run_shard; a dry run ends here with the estimate."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from nightmill.domain.errors import Blocked, Terminal
from nightmill.domain.estimate import described, estimate
from nightmill.domain.pricing import price_on
from nightmill.domain.priority import room_for
from nightmill.domain.states import BatchState
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.services.environment import Environment
from nightmill.storage import batches, contracts, fence, holds, prices, publications, shards
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection
from nightmill.storage.shards import ShardLabel

log = logging.getLogger(__name__)

_SLACK = timedelta(minutes=5)  # between clocks; a scheduled interval ends when its run begins


def run(env: Environment, live: JobDefinition, batch_id: int) -> list[ShardLabel]:
    """The shards that run_shard maps over: none on a dry run, after the end, or when everything was reused."""
    with env.ledger() as conn:
        batch = batches.get(conn, batch_id)
        batches.refuse_without_data(batch)
        if batch.at_rest:
            log.info("batch %s is %s: %s", batch_id, batch.state, batch.state_reason)
            return []
        asked = batch.state is BatchState.BLOCKED and batch.blocked_by == "preflight"
        if asked:
            batch = batches.move(conn, batch, BatchState.QUEUED, "preflight was cleared")
            conn.commit()
        open_shards = list(shards.labels(conn, batch_id))
        if batch.state is BatchState.QUEUED:
            pinned = contracts.load(conn, batch.contract_id)
            _price(env, conn, batch, pinned, live, open_shards)
            _refuse_held(conn, batch)
            _look_ahead(conn, batch, env.now(), ask=bool(open_shards) and not asked)
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
        enqueued_cap=room_for(batch.options.priority, live.job.provider.limits.enqueued_prompt_tokens),
        turnaround_s=live.job.provider.expected_turnaround_s,
    )
    fence.enter(conn, batch.holder)
    batches.record_estimate(conn, batch, worked_out.as_json())
    conn.commit()
    for line in described(worked_out, env.now()):
        log.info("batch %s: %s", batch.batch_id, line)


def _refuse_held(conn: Connection, batch: Batch) -> None:
    """Raise Blocked where the run would replace what a person took back, however often preflight is cleared. A dry run
    and a preview replace nothing."""
    hold = holds.on_batch(conn, batch)
    conn.commit()
    if hold is None:
        return
    log.warning("batch %s: %s", batch.batch_id, hold)
    if batch.dry_run or batch.is_preview:
        return
    refusal = holds.refusal(hold, "preflight")
    batches.move(conn, batch, BatchState.BLOCKED, refusal.cause, blocked_by="preflight")
    conn.commit()
    raise Blocked(refusal.cause, f"Nothing is paid so far. {refusal.remedy}")


def _look_ahead(conn: Connection, batch: Batch, now: datetime, *, ask: bool) -> None:
    """Say what will come of publishing, as far as the interval decides it. With `ask` a person is asked before anything
    is paid: raises Blocked, and clearing the task goes on.

    An old interval is refused by publish; one that ends in the future makes publish refuse the nights before its end.
    """
    mode = publications.mode_of(conn, batch.view_name)
    if mode is PublishMode.BY_INTERVAL:
        _refuse_misplaced(conn, batch)
        return
    if mode is PublishMode.BY_KEY:  # an older run adds ids, and overwrites none
        conn.commit()
        return
    doubt = _refused_here(conn, batch) or _refused_later(batch, now)
    conn.commit()
    if doubt is None or batch.is_preview:
        return
    cause, meanwhile = doubt
    log.warning("batch %s: %s", batch.batch_id, cause)
    if batch.dry_run or not ask:
        return
    batches.move(conn, batch, BatchState.BLOCKED, cause, blocked_by="preflight")
    conn.commit()
    raise Blocked(
        cause,
        f"Nothing is paid so far. Cancel with `python -m nightmill cancel --batch {batch.batch_id}` and trigger a run "
        f"for another interval; or clear preflight to go on all the same: {meanwhile}.",
    )


def _refuse_misplaced(conn: Connection, batch: Batch) -> None:
    """Raise Blocked where publish would refuse the run's interval: it overlaps one that is shown, or was run anew.
    Clearing the task looks again."""
    try:
        publications.kept_beside_shown(conn, batch, publications.current(conn, batch.view_name))
    except Terminal as fault:
        conn.commit()
        log.warning("batch %s: %s", batch.batch_id, fault.cause)
        if batch.dry_run or batch.is_preview:
            return
        batches.move(conn, batch, BatchState.BLOCKED, fault.cause, blocked_by="preflight")
        conn.commit()
        raise Blocked(
            fault.cause,
            f"Nothing is paid so far. Cancel with `python -m nightmill cancel --batch {batch.batch_id}`. "
            f"{fault.remedy}",
        ) from None
    conn.commit()


def _refused_here(conn: Connection, batch: Batch) -> tuple[str, str] | None:
    shown = publications.current(conn, batch.view_name)
    mine = publications.newness(batch)
    if shown is None or mine is None or shown.newness <= mine:
        return None
    cause = (
        f"publish would refuse this run: the view {batch.view_name} shows batch {shown.batch_id} of "
        f"{shown.newness[0]:%Y-%m-%d %H:%M} UTC, which is newer than this run's {mine[0]:%Y-%m-%d %H:%M} UTC."
    )
    return cause, "its answers are paid and kept for reuse, and the view stays as it is"


def _refused_later(batch: Batch, now: datetime) -> tuple[str, str] | None:
    end = batch.data_interval_end
    if end is None or end <= now + _SLACK:
        return None
    cause = (
        f"this run's interval ends in the future, at {end:%Y-%m-%d %H:%M} UTC: once it is published, publish refuses "
        f"every run whose interval ends before that, the scheduled ones too."
    )
    return cause, f"the view {batch.view_name} then shows this run until a later interval is published"

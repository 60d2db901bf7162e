"""One wake-up of a shard: take it over, reconcile, end or wait."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from nightmill.domain.errors import Blocked, NightmillError, StaleWriter, Terminal
from nightmill.domain.progress import one_line
from nightmill.domain.states import BatchState, ShardState
from nightmill.jobs.contract import JobDefinition
from nightmill.services.environment import Environment, scratch
from nightmill.stages.run_shard import advance, send
from nightmill.stages.run_shard.context import LONGEST_WAIT, ShardContext
from nightmill.storage import batches, breakers, contracts, fence, progress, provider_batches, reuse, settlement, shards
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection
from nightmill.storage.shards import Shard

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Finished:
    """Every item of the shard is settled, or its batch is at rest. `line` is for the log; `fault` makes the task red:
    the batch ended without data."""

    line: str
    fault: Terminal | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing more can be done before a provider batch changes or `until` (UTC). `line` is for the log. What is watched
    meanwhile is at `adapter` through `conn_id`, as the batch's contract pinned them."""

    until: datetime
    line: str
    adapter: str
    conn_id: str


def wake(env: Environment, live: JobDefinition, shard_id: int, *, fresh: bool) -> Finished | Waiting:
    """Take every next legal step of a shard. `fresh` is True when a person or a retry started the task, False when
    its trigger woke it.

    Raises Blocked when a person must act, StaleWriter when another wake-up took the shard over meanwhile, Transient
    for faults of our own database or object store.
    """
    with ExitStack() as stack:
        conn = stack.enter_context(env.ledger())
        shard = shards.get(conn, shard_id)
        batch = batches.get(conn, shard.batch_id)
        if batch.at_rest:
            line = f"shard {shard_id}: batch {batch.batch_id} is {batch.state} ({batch.state_reason})"
            return Finished(line, batches.without_data(batch))
        batch, shard, holder = _take(conn, batch, shard, fresh)
        if shard.ended:
            return Finished(f"shard {shard_id} is {shard.state} already")
        pinned = contracts.load(conn, batch.contract_id)
        conn.commit()
        context = ShardContext(
            env=env,
            conn=conn,
            provider=stack.enter_context(env.provider(pinned)),
            account=env.account(pinned).fingerprint,
            batch=batch,
            shard=shard,
            holder=holder,
            pinned=pinned,
            live=live.job,
            directory=stack.enter_context(scratch()),
        )
        with _explained(env, context):
            decision = (_held(context) if not fresh else None) or _reconcile(context)
        seen = progress.read(conn, batch.batch_id)
        log.info("batch %s: %s", batch.batch_id, one_line(seen, env.now()))
        return decision


def _take(conn: Connection, batch: Batch, shard: Shard, fresh: bool) -> tuple[Batch, Shard, fence.Holder]:
    """Take the shard over. The first shard moves its batch to RUNNING; the task that blocked it unblocks it."""
    name = f"shard {shard.shard_id}"
    if batch.state is BatchState.BLOCKED and fresh and batch.blocked_by == name and batch.blocked_from:
        cause = batch.state_reason
        batch = batches.move(conn, batch, BatchState(batch.blocked_from), f"{name} was cleared")
        breakers.reset(conn, batch.batch_id, cause)
    if batch.state is BatchState.QUEUED and not shard.ended:
        fence.enter_exclusive(conn, batch.holder)
        batch = batches.get(conn, batch.batch_id)  # another shard may have moved it while we waited
        if batch.state is BatchState.QUEUED:
            batch = batches.move(conn, batch, BatchState.RUNNING, f"{name} started")
    shard, holder = shards.take_over(conn, shard, batch.generation, "taken over at wake-up")
    conn.commit()
    return batch, shard, holder


@contextmanager
def _explained(env: Environment, context: ShardContext) -> Iterator[None]:
    """Leave with the shard why its task fails. What is not ours can quote a document: only its kind is told."""
    try:
        yield
    except StaleWriter:
        raise
    except Exception as fault:
        context.conn.close()  # with what it holds, or is broken by
        reason = fault.cause if isinstance(fault, NightmillError) else f"ended with {type(fault).__name__}"
        with suppress(Exception), env.ledger() as conn:  # the fault itself is what counts
            shards.note_failure(conn, context.holder, reason)
        raise


def _held(context: ShardContext) -> Waiting | None:
    """Wait on where the provider asked to be left alone longer. A task that was started anew does not."""
    until = context.shard.hold_until
    if until is None or until <= context.env.now():
        return None
    context.note("the provider asked to be left alone")
    context.wake_times.append(until)
    return _wait(context)


def _reconcile(context: ShardContext) -> Finished | Waiting:
    conn, shard = context.conn, context.shard
    settlement.prepare(conn)
    reuse.prepare(conn)
    conn.commit()
    try:
        _advance_all(context)
        rest = dict(shards.unsettled(conn, shard))
        conn.commit()
        if rest:
            send.what_is_due(context, rest)
        finished = not rest or not shards.any_unsettled(conn, shard)
        conn.commit()
        context.unsettled = len(rest)
    except Blocked as fault:
        conn.rollback()
        _block(context, fault)
        raise
    if finished:
        shards.move(conn, shard, context.holder, ShardState.SETTLED, "every item is settled")
        conn.commit()
        return Finished(_line(context, "settled"))
    return _wait(context)


def _advance_all(context: ShardContext) -> None:
    """Drive every live provider batch, unless the provider asks to be left alone. One that needs a person keeps no
    other from being collected."""
    blocked: Blocked | None = None
    for one in provider_batches.of_shard(context.conn, context.shard.shard_id):
        if context.hold_s:
            break
        if not one.live:
            continue
        try:
            advance.provider_batch(context, one)
        except Blocked as fault:
            context.conn.rollback()
            blocked = blocked or fault
    if blocked is not None:
        raise blocked


def _wait(context: ShardContext) -> Waiting:
    """Store when to wake up and say so. Without live provider batches the shard waits for its retry round."""
    live = any(one.live for one in provider_batches.of_shard(context.conn, context.shard.shard_id))
    to = ShardState.RUNNING if live else ShardState.RETRY_WAIT
    now = context.env.now()
    until = min(context.wake_times, default=now + timedelta(seconds=3600))
    until = min(until, now + LONGEST_WAIT)
    if context.hold_s:
        shards.hold(context.conn, context.holder, context.hold_s)
        until = max(until, now + timedelta(seconds=context.hold_s))
    wait_s = (until - now).total_seconds()
    shards.move(context.conn, context.shard, context.holder, to, _seen(context), wait_s, context.unsettled)
    context.conn.commit()
    pinned, line = context.pinned.job.provider, f"waits until {until:%H:%M:%S} UTC or a change at the provider"
    return Waiting(until, _line(context, line), pinned.adapter, pinned.conn_id)


def _block(context: ShardContext, fault: Blocked) -> None:
    """Stop the whole batch from spending: other shards go on collecting what is paid, and send nothing new."""
    batch = batches.get(context.conn, context.batch.batch_id)
    if batch.state is BatchState.RUNNING:
        batches.move(context.conn, batch, BatchState.BLOCKED, fault.cause, blocked_by=f"shard {context.shard.shard_id}")
    context.conn.commit()


def _line(context: ShardContext, end: str) -> str:
    shard = context.shard
    return f"shard {shard.shard_id} (items {shard.first_ordinal}-{shard.last_ordinal}): {_seen(context)}; {end}"


def _seen(context: ShardContext) -> str:
    return "; ".join(context.seen) or "nothing new"

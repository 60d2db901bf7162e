"""One wake-up of a shard: take it over, reconcile, end or wait."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from nightmill.domain.errors import Blocked, NightmillError, StaleWriter, Terminal
from nightmill.domain.progress import one_line
from nightmill.domain.states import BatchState
from nightmill.jobs.contract import JobDefinition
from nightmill.services.environment import Environment, scratch
from nightmill.stages.run_shard import follow, send
from nightmill.stages.run_shard.wake_up import LONGEST_WAIT, WakeUp
from nightmill.storage import batches, breakers, contracts, fence, progress, provider_batches, reuse, settlement, shards
from nightmill.storage.batches import Batch
from nightmill.storage.fence import writing
from nightmill.storage.session import Connection, reading
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


def wake(env: Environment, live: JobDefinition, shard_id: int, *, restarted: bool) -> Finished | Waiting:
    """Take every next legal step of a shard. `restarted` is True when a person or a retry started the task, False when
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
        batch, shard, holder = _take(conn, batch, shard, restarted)
        if shard.ended:
            return Finished(f"shard {shard_id} is {shard.state} already")
        pinned = contracts.load(conn, batch.contract_id)
        conn.commit()
        wake_up = WakeUp(
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
        with _explained(env, wake_up):
            decision = (_held(wake_up) if not restarted else None) or _reconcile(wake_up)
        seen = progress.read(conn, batch.batch_id)
        log.info("batch %s: %s", batch.batch_id, one_line(seen, env.now()))
        return decision


def _take(conn: Connection, batch: Batch, shard: Shard, restarted: bool) -> tuple[Batch, Shard, fence.Holder]:
    """Take the shard over. The first shard moves its batch to RUNNING; the task that blocked it unblocks it."""
    name = f"shard {shard.shard_id}"
    if batch.state is BatchState.BLOCKED and restarted and batch.blocked_by == name and batch.blocked_from:
        cause = batch.state_reason
        batch = batches.unblock(conn, batch, name)
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
def _explained(env: Environment, wake_up: WakeUp) -> Iterator[None]:
    """Leave with the shard why its task fails. What is not ours can quote a document: only its kind is told."""
    try:
        yield
    except StaleWriter:
        raise
    except Exception as fault:
        wake_up.conn.close()  # with what it holds, or is broken by
        reason = fault.cause if isinstance(fault, NightmillError) else f"ended with {type(fault).__name__}"
        with suppress(Exception), env.ledger() as conn:  # the fault itself is what counts
            shards.note_failure(conn, wake_up.holder, reason)
        raise


def _held(wake_up: WakeUp) -> Waiting | None:
    """Wait on where the provider asked to be left alone longer. A task that was started anew does not."""
    until = wake_up.shard.hold_until
    if until is None or until <= wake_up.env.now():
        return None
    wake_up.note("the provider asked to be left alone")
    wake_up.wake_times.append(until)
    return _wait(wake_up)


def _reconcile(wake_up: WakeUp) -> Finished | Waiting:
    conn, shard = wake_up.conn, wake_up.shard
    settlement.prepare(conn)
    reuse.prepare(conn)
    conn.commit()
    try:
        _follow_all(wake_up)
        with reading(conn):
            rest = dict(shards.unsettled(conn, shard))
        if rest:
            send.send_due(wake_up, rest)
        with reading(conn):
            finished = not rest or not shards.any_unsettled(conn, shard)
        wake_up.unsettled = len(rest)
    except Blocked as fault:
        conn.rollback()
        _block(wake_up, fault)
        raise
    if finished:
        with writing(conn, wake_up.holder):
            shards.settled(conn, shard, wake_up.holder)
        return Finished(_line(wake_up, "settled"))
    return _wait(wake_up)


def _follow_all(wake_up: WakeUp) -> None:
    """Drive every live provider batch, unless the provider asks to be left alone. One that needs a person keeps no
    other from being collected."""
    blocked: Blocked | None = None
    with reading(wake_up.conn):
        open_ones = [one for one in provider_batches.of_shard(wake_up.conn, wake_up.shard.shard_id) if one.live]
    for one in open_ones:
        if wake_up.hold_s:
            break
        try:
            follow.provider_batch(wake_up, one)
        except Blocked as fault:
            wake_up.conn.rollback()
            blocked = blocked or fault
    if blocked is not None:
        raise blocked


def _wait(wake_up: WakeUp) -> Waiting:
    """Store when to wake up and say so. Without live provider batches the shard waits for its retry round."""
    conn, holder, now = wake_up.conn, wake_up.holder, wake_up.env.now()
    until = min(wake_up.wake_times, default=now + timedelta(seconds=3600))
    until = min(until, now + LONGEST_WAIT)
    with writing(conn, holder):
        if wake_up.hold_s:
            shards.hold(conn, holder, wake_up.hold_s)
            until = max(until, now + timedelta(seconds=wake_up.hold_s))
        shards.waits(
            conn,
            wake_up.shard,
            holder,
            _said(wake_up),
            is_at_provider=any(one.live for one in provider_batches.of_shard(conn, wake_up.shard.shard_id)),
            wake_in_s=(until - now).total_seconds(),
            unsettled=wake_up.unsettled,
        )
    pinned, line = wake_up.pinned.job.provider, f"waits until {until:%H:%M:%S} UTC or a change at the provider"
    return Waiting(until, _line(wake_up, line), pinned.adapter, pinned.conn_id)


def _block(wake_up: WakeUp, fault: Blocked) -> None:
    """Stop the whole batch from spending: other shards go on collecting what is paid, and send nothing new."""
    batch = batches.get(wake_up.conn, wake_up.batch.batch_id)
    if batch.state is BatchState.RUNNING:
        batches.block(wake_up.conn, batch, wake_up.name, fault.cause)
    wake_up.conn.commit()


def _line(wake_up: WakeUp, end: str) -> str:
    shard = wake_up.shard
    return f"shard {shard.shard_id} (items {shard.first_ordinal}-{shard.last_ordinal}): {_said(wake_up)}; {end}"


def _said(wake_up: WakeUp) -> str:
    return "; ".join(wake_up.said) or "nothing new"

"""Winding a cancelled batch down: what it has at the provider is stopped there, collected, and kept for reuse.

A cancel itself calls no provider: it only shuts the writers out. What was sent before goes on costing money, so
maintenance asks the provider to stop, takes what was finished (attempts for the costs, accepted answers for later
runs) and frees the enqueued tokens. Nothing of it becomes an outcome or a row of the cancelled batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta

from nightmill.domain.deadlines import NO_WINDOW
from nightmill.domain.errors import Blocked, ConfigError, StaleWriter
from nightmill.domain.maintenance import Action, Sweep, not_done
from nightmill.domain.states import ProviderBatchState
from nightmill.domain.wording import counted
from nightmill.jobs.contract import JobDefinition
from nightmill.services.environment import Environment, scratch
from nightmill.stages.run_shard import advance, poll
from nightmill.stages.run_shard.context import ShardContext
from nightmill.storage import batches, contracts, maintenance, provider_batches, settlement, shards
from nightmill.storage.fence import Holder
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.session import Connection

FOLLOWED = timedelta(days=30)  # where the provider does not say until when it keeps results
ALERTED = timedelta(hours=2)  # of what is given up and still followed; then it stands in the log only


def run(
    env: Environment, jobs: Mapping[str, JobDefinition], *, dry_run: bool = False, batch_id: int | None = None
) -> list[Action]:
    """Take every next step of all cancelled batches, or of one. `jobs` are the job folders as they are now, by name.

    Safe to repeat and beside another one: a shard's lease says who goes on. A fault of one shard stops no other.
    """
    with env.ledger() as conn:
        work = shards.to_wind_down(conn, batch_id)
    done: list[Action] = []
    for shard_id, of_batch in work:
        with maintenance.isolated(done, Sweep.CANCELLED, of_batch, unit=f"shard {shard_id}"):
            done += _shard(env, jobs, shard_id, dry_run)
    return done


def _shard(env: Environment, jobs: Mapping[str, JobDefinition], shard_id: int, dry_run: bool) -> list[Action]:
    with ExitStack() as stack:
        conn = stack.enter_context(env.ledger())
        shard = shards.get(conn, shard_id)
        live = [one for one in provider_batches.of_shard(conn, shard_id) if one.live]
        if dry_run:
            return [Action(Sweep.CANCELLED, _intention(one), shard.batch_id) for one in live]
        batch = batches.get(conn, shard.batch_id)
        shard, holder = shards.take_over(conn, shard, batch.generation, f"cancelled: {batch.state_reason}")
        pinned = contracts.load(conn, batch.contract_id)
        settlement.prepare(conn)
        conn.commit()
        try:
            account = env.account(pinned).fingerprint
            provider = stack.enter_context(env.provider(pinned))
        except ConfigError as fault:  # its connection is gone
            return [action for one in live for action in _out_of_reach(env, conn, holder, one, fault)]
        context = ShardContext(
            env=env,
            conn=conn,
            provider=provider,
            account=account,
            batch=batch,
            shard=shard,
            holder=holder,
            pinned=pinned,
            live=jobs.get(batch.job, pinned).job,
            directory=stack.enter_context(scratch()),
            winding_down=True,
        )
        return _provider_batches(context, live)


def _intention(one: ProviderBatch) -> str:
    sent = f"{counted(one.requests, 'request')} as {one.provider_id}" if one.provider_id else "nothing known to be sent"
    return f"provider batch {one.provider_batch_id} is {one.state} ({sent}): would be stopped and collected"


def _provider_batches(context: ShardContext, live: list[ProviderBatch]) -> list[Action]:
    """Drive each of them, unless the provider asks to be left alone: the first sweep after that time goes on."""
    done: list[Action] = []
    now, held_until = context.env.now(), context.shard.hold_until
    if held_until is not None and now < held_until:
        context.leave_alone((held_until - now).total_seconds())
    for one in live:
        if not context.hold_s:
            done += _provider_batch(context, one)
        done += _given_up(context.env, context.conn, context.holder, one)
    if context.hold_s:
        shards.hold(context.conn, context.holder, context.hold_s)
        context.conn.commit()
        until = f"{now + timedelta(seconds=context.hold_s):%Y-%m-%d %H:%M} UTC"
        told = f"shard {context.shard.shard_id}: the provider asked to be left alone until {until}"
        done.append(Action(Sweep.CANCELLED, told, context.batch.batch_id))
    return done


def _provider_batch(context: ShardContext, one: ProviderBatch) -> list[Action]:
    blocked, failed = False, []
    try:
        advance.provider_batch(context, one)
    except StaleWriter:
        raise
    except Blocked as fault:
        context.conn.rollback()
        blocked = True
        context.note(f"provider batch {one.provider_batch_id}: {fault.cause}")
    except Exception as fault:  # the shard's others go on, and this one is given up in the end
        if context.conn.closed:
            raise
        context.conn.rollback()
        unit = f"provider batch {one.provider_batch_id}"
        failed = [not_done(Sweep.CANCELLED, fault, context.batch.batch_id, unit)]
    said, context.seen = context.seen, []
    return [Action(Sweep.CANCELLED, line, context.batch.batch_id, alert=blocked) for line in said] + failed


def _out_of_reach(
    env: Environment, conn: Connection, holder: Holder, one: ProviderBatch, fault: ConfigError
) -> list[Action]:
    told = f"provider batch {one.provider_batch_id}: {fault.cause}"
    return [Action(Sweep.CANCELLED, told, one.batch_id, alert=True), *_given_up(env, conn, holder, one, reached=False)]


def _given_up(
    env: Environment, conn: Connection, holder: Holder, one: ProviderBatch, *, reached: bool = True
) -> list[Action]:
    """Nothing waits for ever: what could not be ended and collected by then holds no tokens and no items any more. A
    batch that the provider still has is read and booked whenever it ends, as long as its results are kept there."""
    now = next(again for again in provider_batches.of_shard(conn, one.shard_id) if again.token == one.token)
    since = now.ended_at or now.submitted_at or now.creating_at or now.intent_at
    conn.commit()
    late_at = max(since, now.window_ends_at or since + NO_WINDOW) + poll.LATE
    if not now.live or env.now() <= late_at:
        return []
    name = f"provider batch {now.provider_batch_id}"
    kept_until = now.results_until or since + FOLLOWED
    if reached and now.state is ProviderBatchState.SUBMITTED and env.now() <= kept_until:
        told = f"{name}: given up waiting, look at {now.provider_id} at the provider; it is read once it has ended"
        return [Action(Sweep.CANCELLED, told, now.batch_id, alert=env.now() <= late_at + ALERTED)]
    reason = f"cancelled, and still {now.state} {poll.LATE} after its window"
    provider_batches.move(conn, holder, now, ProviderBatchState.ABANDONED, reason)
    conn.commit()
    told = f"{name}: given up, look at {now.provider_id or 'it'} at the provider"
    return [Action(Sweep.CANCELLED, told, now.batch_id, alert=True)]

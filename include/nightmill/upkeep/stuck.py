"""Stuck work of open batches: every state of a provider batch has a deadline, and so has a shard's wake-up.

What hangs at the provider is cancelled there; its shard then finds it ended, collects what is finished and sends the
rest again. What hangs on our side needs a person, and the alert says who and where.
"""

from __future__ import annotations

from nightmill.domain import deadlines
from nightmill.domain.deadlines import Remedy
from nightmill.domain.errors import NightmillError
from nightmill.domain.maintenance import Action, Sweep
from nightmill.services.environment import Environment
from nightmill.storage import account_limits, contracts, maintenance, provider_batches
from nightmill.storage.maintenance import Followed
from nightmill.storage.session import Connection


def run(env: Environment, *, dry_run: bool = False) -> list[Action]:
    """Look at every live provider batch and shard of open batches."""
    done: list[Action] = []
    with env.ledger() as conn:
        for one in maintenance.followed(conn):
            unit = f"provider batch {one.provider_batch_id}"
            with maintenance.isolated(done, Sweep.STUCK, one.batch_id, unit=unit, conn=conn):
                done += _provider_batch(env, conn, one, dry_run)
        with maintenance.isolated(done, Sweep.STUCK, unit="shards that wait", conn=conn):
            done += _shards(env, conn)
        with maintenance.isolated(done, Sweep.STUCK, unit="accounts that refuse", conn=conn):
            done += [
                Action(Sweep.STUCK, f"account {one.account}: {one}", alert=True)
                for one in account_limits.stuck(conn, env.now())
            ]
    return done


def _provider_batch(env: Environment, conn: Connection, one: Followed, dry_run: bool) -> list[Action]:
    found = deadlines.overdue(one.in_state, env.now())
    if found is None:
        return []
    told = f"provider batch {one.provider_batch_id} is {found.why}"
    if found.remedy is Remedy.ASK:
        told += f"; clear run_shard of shard {one.shard_id}, or cancel the batch"
        return [Action(Sweep.STUCK, told, one.batch_id, alert=True)]
    what, failed = _stopped(env, conn, one, dry_run)
    return [Action(Sweep.STUCK, f"{told}; {what}", one.batch_id, alert=True, failed=failed)]


def _shards(env: Environment, conn: Connection) -> list[Action]:
    done: list[Action] = []
    for due in maintenance.overdue_shards(conn, env.now() - deadlines.SHARD_OVERDUE):
        told = (
            f"shard {due.shard_id} was due at {due.wake_at:%Y-%m-%d %H:%M} UTC and nobody woke it: its task has "
            "failed, or the triggerer is down; clear run_shard, and run doctor"
        )
        done.append(Action(Sweep.STUCK, told, due.batch_id, alert=True))
    for idle in maintenance.stalled_shards(conn, env.now() - deadlines.SHARD_STALLED):
        told = f"shard {idle.shard_id} has got no answer since {idle.since:%Y-%m-%d %H:%M} UTC: {idle.state_reason}"
        done.append(Action(Sweep.STUCK, told, idle.batch_id, alert=True))
    return done


def _stopped(env: Environment, conn: Connection, one: Followed, dry_run: bool) -> tuple[str, bool]:
    """Ask the provider to end it; what came of that, and whether it failed. The shard records what comes of it: this
    sweep notes only that it asked."""
    assert one.provider_id is not None
    pinned = contracts.load(conn, one.contract_id)
    conn.commit()
    if dry_run:
        return f"{one.provider_id} would be cancelled at the provider", False
    provider_batches.note_stop_asked(conn, one.provider_batch_id)  # else its shard takes it for a person's doing
    conn.commit()
    try:
        with env.provider(pinned) as provider:
            now = provider.transport.cancel(one.provider_id)
    except NightmillError as fault:
        return f"cancelling {one.provider_id} failed: {fault.cause}", True
    return f"{one.provider_id} was cancelled at the provider and is {now.raw_status}", False

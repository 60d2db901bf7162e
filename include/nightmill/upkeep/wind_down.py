"""Winding a cancelled batch down: what it has at the provider is stopped there, collected, and kept for reuse.

A cancel itself calls no provider: it only shuts the writers out. What was sent before goes on costing money, so
maintenance asks the provider to stop, takes what was finished (attempts for the costs, accepted answers for later
runs) and frees the enqueued tokens. Nothing of it becomes an outcome or a row of the cancelled batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta

from nightmill.domain.errors import Blocked, ConfigError, StaleWriter
from nightmill.domain.maintenance import Action, Sweep, not_done
from nightmill.domain.next_step import not_ended_in_time
from nightmill.domain.step_facts import Rules
from nightmill.domain.steps import AskPerson
from nightmill.domain.wording import pluralised
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.settings.job import Job
from nightmill.providers.registry import adapter
from nightmill.services.environment import Environment, scratch
from nightmill.stages.run_shard import facts_and_rules, follow
from nightmill.stages.run_shard.wake_up import WakeUp
from nightmill.storage import batches, contracts, maintenance, provider_batches, settlement, shards
from nightmill.storage.batches import Batch
from nightmill.storage.fence import Holder, writing
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.session import Connection, reading
from nightmill.storage.shards import Shard

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


@dataclass(frozen=True, slots=True)
class _Work:
    """One shard of a cancelled batch, taken over. `live` are its job's settings as they are now."""

    env: Environment
    conn: Connection
    holder: Holder
    batch: Batch
    shard: Shard
    pinned: JobDefinition
    live: Job


def _shard(env: Environment, jobs: Mapping[str, JobDefinition], shard_id: int, dry_run: bool) -> list[Action]:
    with ExitStack() as stack:
        conn = stack.enter_context(env.ledger())
        shard = shards.get(conn, shard_id)
        open_ones = [one for one in provider_batches.of_shard(conn, shard_id) if one.live]
        if dry_run:
            return [Action(Sweep.CANCELLED, _intention(one), shard.batch_id) for one in open_ones]
        batch = batches.get(conn, shard.batch_id)
        shard, holder = shards.take_over(conn, shard, batch.generation, f"cancelled: {batch.state_reason}")
        pinned = contracts.load(conn, batch.contract_id)
        settlement.prepare(conn)
        conn.commit()
        work = _Work(env, conn, holder, batch, shard, pinned, jobs.get(batch.job, pinned).job)
        try:
            wake_up = _wake_up(stack, work)
        except ConfigError as fault:  # its connection is gone
            return [action for one in open_ones for action in _out_of_reach(work, one, fault)]
        return _provider_batches(wake_up, open_ones)


def _wake_up(stack: ExitStack, work: _Work) -> WakeUp:
    """Raises ConfigError where there is no such connection any more."""
    return WakeUp(
        env=work.env,
        conn=work.conn,
        account=work.env.account(work.pinned).fingerprint,
        provider=stack.enter_context(work.env.provider(work.pinned)),
        batch=work.batch,
        shard=work.shard,
        holder=work.holder,
        pinned=work.pinned,
        live=work.live,
        directory=stack.enter_context(scratch()),
        winding_down=True,
    )


def _intention(one: ProviderBatch) -> str:
    sent = (
        f"{pluralised(one.requests, 'request')} as {one.provider_id}" if one.provider_id else "nothing known to be sent"
    )
    return f"provider batch {one.provider_batch_id} is {one.state} ({sent}): would be stopped and collected"


def _provider_batches(wake_up: WakeUp, live: list[ProviderBatch]) -> list[Action]:
    """Drive each of them, unless the provider asks to be left alone: the first sweep after that time goes on."""
    done: list[Action] = []
    now, held_until = wake_up.env.now(), wake_up.shard.hold_until
    if held_until is not None and now < held_until:
        wake_up.leave_alone((held_until - now).total_seconds())
    for one in live:
        done += _provider_batch(wake_up, one) if not wake_up.hold_s else _late(wake_up, one)
    if wake_up.hold_s:
        with writing(wake_up.conn, wake_up.holder):
            shards.hold(wake_up.conn, wake_up.holder, wake_up.hold_s)
        until = f"{now + timedelta(seconds=wake_up.hold_s):%Y-%m-%d %H:%M} UTC"
        told = f"shard {wake_up.shard.shard_id}: the provider asked to be left alone until {until}"
        done.append(Action(Sweep.CANCELLED, told, wake_up.batch.batch_id))
    return done


def _provider_batch(wake_up: WakeUp, one: ProviderBatch) -> list[Action]:
    step, done = None, []
    try:
        step = follow.provider_batch(wake_up, one)
    except StaleWriter:
        raise
    except Blocked as fault:
        wake_up.conn.rollback()
        wake_up.note(f"provider batch {one.provider_batch_id}: {fault.cause}", alarm=True)
    except Exception as fault:  # the shard's others go on, and this one is given up in the end
        if wake_up.conn.closed:
            raise
        wake_up.conn.rollback()
        unit = f"provider batch {one.provider_batch_id}"
        done = [not_done(Sweep.CANCELLED, fault, wake_up.batch.batch_id, unit)]
    alarms = set() if isinstance(step, AskPerson) and _was_said(wake_up, one) else wake_up.alarms
    said = [Action(Sweep.CANCELLED, line, wake_up.batch.batch_id, alert=line in alarms) for line in wake_up.said]
    wake_up.said.clear()
    return said + done + (_late(wake_up, one) if step is None else [])


def _was_said(wake_up: WakeUp, one: ProviderBatch) -> bool:
    """Whether a person has heard for long enough that it does not end."""
    late_at = facts_and_rules.rules_of(wake_up, one).late_at(facts_and_rules.facts_of(one))
    return wake_up.env.now() > late_at + ALERTED


def _late(wake_up: WakeUp, one: ProviderBatch) -> list[Action]:
    """Nothing waits for ever, also where it cannot be followed now."""
    rules = facts_and_rules.rules_of(wake_up, one)
    return _given_up(wake_up.conn, wake_up.holder, one, rules, wake_up.env.now())


def _out_of_reach(work: _Work, one: ProviderBatch, fault: ConfigError) -> list[Action]:
    """Its connection is gone: what it has at the provider is not followed after its time."""
    told = f"provider batch {one.provider_batch_id}: {fault.cause}"
    said = [Action(Sweep.CANCELLED, told, one.batch_id, alert=True)]
    capabilities = adapter(work.pinned.job.provider.adapter).capabilities
    rules = facts_and_rules.rules(work.pinned, work.live, capabilities, account="", winding_down=True)
    return said + _given_up(work.conn, work.holder, one, rules, work.env.now(), is_followed=False)


def _given_up(
    conn: Connection, holder: Holder, one: ProviderBatch, rules: Rules, now: datetime, *, is_followed: bool = True
) -> list[Action]:
    with reading(conn):
        one = provider_batches.get(conn, one.provider_batch_id)
    facts = facts_and_rules.facts_of(one)
    found = not_ended_in_time(facts, rules, now) if one.live else None
    if found is None:
        return []
    if isinstance(found, AskPerson) and is_followed:
        is_news = now <= rules.late_at(facts) + ALERTED
        return [Action(Sweep.CANCELLED, found.cause, one.batch_id, alert=is_news)]
    follow.give_up_waiting(conn, holder, one)
    return [Action(Sweep.CANCELLED, follow.told_of_given_up(one), one.batch_id, alert=True)]

"""Reads what the next step of a provider batch is decided from: its facts, and the rules of its job and provider."""

from __future__ import annotations

from datetime import timedelta

from nightmill.domain import step_facts
from nightmill.domain.capabilities import Capabilities
from nightmill.domain.snapshots import Snapshot
from nightmill.domain.states import ProviderBatchState
from nightmill.domain.step_facts import Facts, MaySend, Rules, Seen, Sending
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.settings.job import Job
from nightmill.stages.run_shard import throttle
from nightmill.stages.run_shard.wake_up import WakeUp
from nightmill.storage import breakers
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.session import reading


def facts_now(wake_up: WakeUp, one: ProviderBatch, seen: Seen) -> Facts:
    """Its row as the table reads it; whether it is the account's probe is asked where it was polled just now."""
    was_polled = isinstance(seen, Snapshot) and one.state is ProviderBatchState.SUBMITTED and one.taken_at is None
    return facts_of(one, is_probe=was_polled and throttle.is_probe(wake_up, one))


def facts_of(one: ProviderBatch, *, is_probe: bool = False) -> Facts:
    """`is_probe`: the account's other files wait for what becomes of it."""
    return Facts(
        provider_batch_id=one.provider_batch_id,
        batch_id=one.batch_id,
        shard_id=one.shard_id,
        state=one.state,
        account=one.account,
        token=one.token,
        requests=one.requests,
        intent_at=one.intent_at,
        input_ref=one.input_ref,
        creating_at=one.creating_at,
        submitted_at=one.submitted_at,
        provider_id=one.provider_id,
        raw_status=one.raw_status,
        unknown_since=one.unknown_since,
        over_at=one.over_at,
        ended_at=one.ended_at,
        window_ends_at=one.window_ends_at,
        results_until=one.results_until,
        total=one.requests_total,
        finished=one.finished,
        answered=one.requests_answered,
        results_named=bool(one.result_refs),
        answers_named=one.names_answers,
        stopped=one.stopped,
        stopped_by_hand=one.stopped_by_hand,
        is_probe=is_probe,
    )


def rules_of(wake_up: WakeUp, one: ProviderBatch) -> Rules:
    """The rules as they hold now, for one provider batch of this wake-up."""
    return rules(
        wake_up.pinned,
        wake_up.live,
        wake_up.transport.capabilities,
        account=wake_up.account,
        winding_down=wake_up.winding_down,
        sending=_sending(wake_up, one),
    )


def rules(
    pinned: JobDefinition,
    live: Job,
    capabilities: Capabilities,
    *,
    account: str,
    winding_down: bool = False,
    sending: Sending | None = None,
) -> Rules:
    """What was pinned counts for a call that went out already (its timeout, its quiet period, its connection); how long
    to wait and to look is read live."""
    sent_by, provider = pinned.job.provider, live.provider
    quiet_s = sent_by.quiet_period_s
    return Rules(
        capabilities=capabilities,
        account=account,
        conn_id=sent_by.conn_id,
        poll_interval=timedelta(seconds=provider.poll_interval_s),
        create_timeout=timedelta(seconds=sent_by.create_timeout_s),
        quiet_period=None if quiet_s is None else timedelta(seconds=quiet_s),
        results_grace=timedelta(seconds=provider.results_grace_s),
        unknown_status=timedelta(seconds=provider.unknown_status_s),
        abandoned_after=timedelta(seconds=live.maintenance.abandoned_after_s),
        winding_down=winding_down,
        sending=sending or MaySend(),
    )


def _sending(wake_up: WakeUp, one: ProviderBatch) -> Sending:
    """What speaks against a create call, read as late as possible."""
    may_create = one.state is ProviderBatchState.INTENT or (
        one.state is ProviderBatchState.CREATING and wake_up.transport.capabilities.create_is_idempotent
    )
    if not may_create or wake_up.winding_down:
        return MaySend()
    if wake_up.is_blocked():
        return step_facts.Blocked(one.intent_at)
    with reading(wake_up.conn):
        standing = breakers.standing(wake_up.conn, wake_up.batch.batch_id)
    if standing.cause is not None and standing.remedy is not None:
        return step_facts.Broken(standing.cause, standing.remedy)
    return MaySend()

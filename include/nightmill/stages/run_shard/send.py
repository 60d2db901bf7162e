"""Sending what no live provider batch carries: intent -> upload -> create, file by file, as far as limits allow."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from nightmill.domain.backoff import retry_delay_s
from nightmill.domain.states import ProviderBatchState
from nightmill.stages.run_shard import advance, render
from nightmill.stages.run_shard.context import ShardContext
from nightmill.storage import fence, provider_batches, reuse, settlement
from nightmill.storage.provider_batches import Intent, ProviderBatch

MOST_HALVINGS = 6  # a queue that others keep full must not grind files to dust


def what_is_due(context: ShardContext) -> None:
    """Send all items that are unsettled, not carried and not waiting for a retry round."""
    wanted = _candidates(context)
    if not wanted or context.send_nothing:
        return
    due = _retry_due(context, wanted)
    if due is not None and context.env.now() < due:
        context.note(f"{len(wanted)} items wait for their next round")
        context.wake_times.append(due)
        return
    if context.blocked():
        context.note(f"{len(wanted)} items are not sent: the batch is BLOCKED")
        context.look_again_in(300)
        return
    while wanted and not context.send_nothing:
        sent = _one_file(context, wanted)
        if sent is None:
            return
        for ordinal in sent.carries():
            wanted.pop(ordinal, None)


def _retry_due(context: ShardContext, wanted: dict[int, int]) -> datetime | None:
    """When items that failed before may be sent again; None when none of them failed.

    Derived from the attempts themselves, so that a restarted task waits no shorter and no longer. The jitter is fixed
    per shard and round.
    """
    failed = settlement.failed_rounds(context.conn, context.batch.batch_id, provider_batches.multirange(wanted))
    context.conn.commit()
    if failed is None:
        return None
    rounds, last_at = failed
    retry = context.live.retry
    jitter = (context.shard.shard_id * 2_654_435_761 + rounds) % 1000 / 1000
    return last_at + timedelta(seconds=retry_delay_s(rounds, retry.base_delay_s, retry.max_delay_s, jitter))


def _candidates(context: ShardContext) -> dict[int, int]:
    """Ordinal -> prompt tokens of what could be sent, after settling what another batch answered meanwhile."""
    shard = context.shard
    carried = {
        ordinal
        for one in provider_batches.of_shard(context.conn, shard.shard_id)
        if one.live
        for ordinal in one.carries()
    }
    rest = settlement.unsettled_in(context.conn, shard.batch_id, shard.first_ordinal, shard.last_ordinal)
    wanted = {ordinal: tokens for ordinal, tokens in rest if ordinal not in carried}
    if not wanted:
        context.conn.commit()
        return wanted
    ranges = provider_batches.multirange(wanted)
    elsewhere = provider_batches.carried_elsewhere(context.conn, shard.batch_id, context.pinned.name, ranges)
    context.conn.commit()
    if elsewhere:
        context.note(f"{len(elsewhere)} items wait for the answer that another batch is getting")
        context.look_again_in(context.live.provider.poll_interval_s * 2)
    if not context.batch.params.get("reprocess"):
        for ordinal in _answered_meanwhile(context):
            wanted.pop(ordinal, None)
    return {ordinal: tokens for ordinal, tokens in wanted.items() if ordinal not in elsewhere}


def _answered(context: ShardContext) -> set[int]:
    """The unsettled items whose key has a result that passed today's rules; collected for `reuse.settle`."""
    shard, conn = context.shard, context.conn
    reuse.find(conn, shard.batch_id, shard.first_ordinal, shard.last_ordinal, context.pinned.validators_hash)
    reuse.reject(conn, [ordinal for ordinal, _, _ in reuse.outdated(conn)])
    return set(reuse.collected(conn))


def _answered_meanwhile(context: ShardContext) -> set[int]:
    """Settle items whose key has a result by now, and return them."""
    shard, conn = context.shard, context.conn
    ordinals = _answered(context)
    conn.commit()
    if not ordinals:
        return ordinals
    fence.enter(conn, context.holder)
    reuse.settle(conn, shard.batch_id, shard.first_ordinal, shard.last_ordinal, context.settling)
    conn.commit()
    return ordinals


def _one_file(context: ShardContext, wanted: dict[int, int]) -> ProviderBatch | None:
    """Send one file of the wanted items; None when the account has no room now or the provider gave no answer."""
    budget = _token_budget(context)
    if budget is not None and budget < next(iter(wanted.values())) and budget < (_cap(context) or 0):
        _no_room(context)
        return None
    learned = _learned_budget(context)
    budget = min((one for one in (budget, learned) if one is not None), default=None)
    file = render.one_file(context, secrets.token_hex(8), wanted, budget)
    intent = Intent(
        job=context.pinned.name,
        token=file.token,
        account=context.account,
        model=context.pinned.job.provider.model,
        ordinals=file.ordinals,
        prompt_tokens=file.prompt_tokens,
        file_bytes=file.file_bytes,
        enqueued_cap=_cap(context),
    )
    if _taken_elsewhere(context, intent):
        return None
    one = provider_batches.intend(context.conn, context.holder, intent)
    context.conn.commit()
    if one is None:
        _no_room(context)
        return None
    advance.provider_batch(context, one, file)
    file.path.unlink()
    return one


def _taken_elsewhere(context: ShardContext, intent: Intent) -> bool:
    """Whether another batch began to carry some of these keys, or answered them, while the file was rendered.

    Enters the transaction of the intent and takes the job's lock, so that of two batches only one sends a key.
    """
    fence.enter(context.conn, context.holder)
    provider_batches.lock_sending(context.conn, intent.job, intent.account, intent.model)
    ranges = provider_batches.multirange(intent.ordinals)
    elsewhere = provider_batches.carried_elsewhere(context.conn, context.batch.batch_id, intent.job, ranges)
    if not context.batch.params.get("reprocess"):
        elsewhere |= _answered(context) & set(intent.ordinals)
    if not elsewhere:
        return False
    context.conn.commit()
    context.note(f"{len(elsewhere)} items were sent by another batch just now; the others follow")
    context.look_again_in(context.live.provider.poll_interval_s)
    return True


def _no_room(context: ShardContext) -> None:
    context.note("the enqueued-token limit of the account leaves no room now")
    context.look_again_in(context.live.provider.poll_interval_s)


def _cap(context: ShardContext) -> int | None:
    return context.limits.enqueued_prompt_tokens


def _token_budget(context: ShardContext) -> int | None:
    """Prompt tokens that the account takes now."""
    cap = _cap(context)
    if cap is None:
        return None
    waiting = provider_batches.enqueued_tokens(context.conn, context.account, context.pinned.job.provider.model)
    context.conn.commit()
    return max(0, cap - waiting)


def _learned_budget(context: ShardContext) -> int | None:
    """Prompt tokens of one file after the provider refused files as a whole: half as many after each refusal in a
    row, because the account's real limit cannot be read; None when the last file was taken."""
    refused: list[int] = []
    for one in reversed(provider_batches.of_shard(context.conn, context.shard.shard_id)):
        if one.live:
            continue
        if one.state is not ProviderBatchState.ABANDONED or one.provider_id is None:
            break
        refused.append(one.prompt_tokens)
    context.conn.commit()
    return refused[-1] >> min(len(refused), MOST_HALVINGS) if refused else None

"""Sending what no live provider batch carries: intent -> upload -> create, file by file, as far as limits allow."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import islice

from nightmill.domain.backoff import retry_delay_s
from nightmill.domain.failures import Failure, FailureClass
from nightmill.stages.run_shard import advance, breaker, refused, render, throttle
from nightmill.stages.run_shard.context import ShardContext
from nightmill.storage import breakers, fence, provider_batches, reuse, settlement
from nightmill.storage.provider_batches import Intent, ProviderBatch
from nightmill.storage.ranges import multirange
from nightmill.storage.settlement import FailedItem


def what_is_due(context: ShardContext, unsettled: Mapping[int, int]) -> None:
    """Send those of the unsettled items (ordinal -> prompt tokens) that are not carried and wait for no retry round."""
    wanted = _candidates(context, unsettled)
    if not wanted:
        return
    if context.blocked():
        context.note(f"{len(wanted)} items are not sent: the batch is BLOCKED")
        context.look_again_in(300)
        return
    breaker.refuse_open(context)
    if context.send_nothing:
        return
    ranges = multirange(wanted)
    failed = settlement.failed_items(context.conn, context.batch.batch_id, ranges)
    former = provider_batches.of_shard(context.conn, context.shard.shard_id)
    context.conn.commit()
    _postpone(context, wanted, failed)
    rest, groups = refused.suspects_apart(wanted, former, failed)
    if _send_all(context, rest, failed) and groups:
        if refused.is_one_tried(former):
            context.look_again_in(context.live.provider.poll_interval_s)
            return
        _one_file(context, max(groups, key=len), failed)  # level by level: all halves before any quarter
        context.look_again_in(context.live.provider.poll_interval_s)


def _send_all(context: ShardContext, wanted: dict[int, int], failed: Mapping[int, FailedItem]) -> bool:
    """Send file after file; whether that came to its end."""
    while wanted and not context.send_nothing:
        handled = _one_file(context, wanted, failed)
        if handled is None:
            return False
        for ordinal in handled:
            wanted.pop(ordinal, None)
    return not context.send_nothing


def _postpone(context: ShardContext, wanted: dict[int, int], failed: Mapping[int, FailedItem]) -> None:
    """Take out the items whose next round is not due yet. A round is what failed in one provider batch as often.

    When it is due is derived from the attempts themselves, so that a restarted task waits no shorter and no longer.
    The jitter is fixed per round.
    """
    rounds: dict[tuple[int, int], list[FailedItem]] = {}
    for one in failed.values():
        if one.failures:
            rounds.setdefault((one.provider_batch_id, one.failures), []).append(one)
    retry, now, waiting = context.live.retry, context.env.now(), 0
    for (provider_batch_id, failures), items in rounds.items():
        draw = random.Random(f"{provider_batch_id}/{failures}").random()
        delay_s = retry_delay_s(failures, retry.base_delay_s, retry.max_delay_s, draw)
        due = max(one.last_at for one in items) + timedelta(seconds=delay_s)
        if now < due:
            waiting += len(items)
            context.wake_times.append(due)
            for one in items:
                wanted.pop(one.ordinal, None)
    if waiting:
        context.note(f"{waiting} items wait for their next round")


def _candidates(context: ShardContext, unsettled: Mapping[int, int]) -> dict[int, int]:
    """What of it could be sent, after settling what another batch answered meanwhile.

    A shard that was never awake before is as its planning left it, which looked for answers; should there be some by
    now, they are seen before anything is sent.
    """
    shard = context.shard
    carried = {
        ordinal
        for one in provider_batches.of_shard(context.conn, shard.shard_id)
        if one.live
        for ordinal in one.carries()
    }
    wanted = {ordinal: tokens for ordinal, tokens in unsettled.items() if ordinal not in carried}
    if not wanted:
        context.conn.commit()
        return wanted
    ranges = multirange(wanted)
    elsewhere = provider_batches.carried_elsewhere(context.conn, shard.batch_id, context.pinned.name, ranges)
    context.conn.commit()
    if elsewhere:
        context.note(f"{len(elsewhere)} items wait for the answer that another batch is getting")
        context.look_again_in(context.live.provider.poll_interval_s * 2)
    if shard.lease > 1 and not context.batch.params.get("reprocess"):
        for ordinal in _answered_meanwhile(context, wanted):
            wanted.pop(ordinal, None)
    return {ordinal: tokens for ordinal, tokens in wanted.items() if ordinal not in elsewhere}


def _answered(context: ShardContext, ordinals: Iterable[int]) -> set[int]:
    """Those of the unsettled items whose key has a result that passed today's rules; collected for `reuse.settle`."""
    conn = context.conn
    reuse.find_among(conn, context.shard.batch_id, ordinals, context.pinned.validators_hash)
    reuse.reject(conn, [ordinal for ordinal, _, _ in reuse.outdated(conn)])
    return set(reuse.collected(conn))


def _answered_meanwhile(context: ShardContext, wanted: Iterable[int]) -> set[int]:
    """Settle those of the wanted items whose key has a result by now, and return them."""
    shard, conn = context.shard, context.conn
    ordinals = _answered(context, wanted)
    conn.commit()
    if not ordinals:
        return ordinals
    fence.enter(conn, context.holder)
    reuse.settle(conn, shard.batch_id, shard.first_ordinal, shard.last_ordinal, context.settling)
    conn.commit()
    return ordinals


def _one_file(context: ShardContext, wanted: dict[int, int], failed: Mapping[int, FailedItem]) -> list[int] | None:
    """Send one file of the wanted items and return the items that are dealt with; None when nothing can go out now."""
    most = breaker.most_now(context)
    if most == 0 or not throttle.is_open(context):
        context.conn.commit()
        return None
    budget = _token_budget(context)
    if budget is not None and budget < next(iter(wanted.values())) and budget < (_cap(context) or 0):
        _no_room(context)
        return None
    known, now = throttle.standing(context), context.env.now()
    learned = known.room(_enqueued(context), now)
    if learned == 0:
        _no_room(context)
        return None
    budget = min((one for one in (budget, learned) if one is not None), default=None)
    chosen = wanted if most is None else dict(islice(wanted.items(), most))
    file = render.one_file(context, secrets.token_hex(8), chosen, failed, budget, known.file_limits(now))
    _refuse_too_long(context, file.too_long)
    if not file.ordinals:
        return file.too_long
    one = _intended(context, file, alone=most is not None)
    if one is None:
        return None
    advance.provider_batch(context, one, file)
    file.path.unlink()
    return file.ordinals + file.too_long


def _intended(context: ShardContext, file: render.RequestFile, *, alone: bool) -> ProviderBatch | None:
    """The provider batch of a file that goes out; None where something speaks against it by now. `alone`: no other one
    of its batch may be under way."""
    intent = Intent(
        job=context.pinned.name,
        token=file.token,
        account=context.account,
        adapter=context.pinned.job.provider.adapter,
        model=context.pinned.job.provider.model,
        ordinals=file.ordinals,
        prompt_tokens=file.prompt_tokens,
        file_bytes=file.file_bytes,
        enqueued_cap=_cap(context),
    )
    if _taken_elsewhere(context, intent):
        return None
    if alone and breakers.standing(context.conn, context.batch.batch_id).in_flight:
        context.conn.commit()
        context.look_again_in(context.live.provider.poll_interval_s * 4)
        return None
    one = provider_batches.intend(context.conn, context.holder, intent)
    if one is None:
        _no_room(context)
    elif not throttle.admits(context, one):
        context.conn.rollback()  # somebody else probes since a moment
        return None
    context.conn.commit()
    return one


def _refuse_too_long(context: ShardContext, ordinals: list[int]) -> None:
    """Dead-letter items whose request alone is larger than a file may be."""
    if not ordinals:
        return
    message = (
        f"never sent: its request line is longer than a file of {context.limits.bytes_per_file} bytes; set "
        "provider.context_window_tokens, or shorten the text in the source query"
    )
    fence.enter(context.conn, context.holder)
    failure = Failure(FailureClass.INPUT, "line_too_long", message)
    settlement.refuse_unsent(context.conn, context.batch.batch_id, ordinals, failure)
    context.conn.commit()
    context.note(f"{len(ordinals)} items are too long for a file, dead-lettered")


def _taken_elsewhere(context: ShardContext, intent: Intent) -> bool:
    """Whether another batch began to carry some of these keys, or answered them, while the file was rendered.

    Enters the transaction of the intent and takes the job's lock, so that of two batches only one sends a key.
    """
    fence.enter(context.conn, context.holder)
    provider_batches.lock_sending(context.conn, intent.job, intent.account)
    ranges = multirange(intent.ordinals)
    elsewhere = provider_batches.carried_elsewhere(context.conn, context.batch.batch_id, intent.job, ranges)
    if not context.batch.params.get("reprocess"):
        elsewhere |= _answered(context, intent.ordinals)
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
    """Prompt tokens that the account takes now, as job.yaml has it."""
    cap = _cap(context)
    return None if cap is None else max(0, cap - _enqueued(context))


def _enqueued(context: ShardContext) -> int:
    """Prompt tokens of the account's files of this model that have not ended."""
    waiting = provider_batches.enqueued_tokens(context.conn, context.account, context.pinned.job.provider.model)
    context.conn.commit()
    return waiting

"""Sending what no live provider batch carries: intent -> upload -> create, file by file, as far as limits allow."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterable, Mapping
from datetime import timedelta

from nightmill.domain.backoff import retry_delay_s
from nightmill.domain.failures import Failure, FailureClass
from nightmill.stages.run_shard import advance, refused, render
from nightmill.stages.run_shard.context import ShardContext
from nightmill.storage import fence, provider_batches, reuse, settlement
from nightmill.storage.provider_batches import Intent
from nightmill.storage.ranges import multirange
from nightmill.storage.settlement import FailedItem

MOST_HALVINGS = 6  # a queue that others keep full must not grind files to dust


def what_is_due(context: ShardContext, unsettled: Mapping[int, int]) -> None:
    """Send those of the unsettled items (ordinal -> prompt tokens) that are not carried and wait for no retry round."""
    wanted = _candidates(context, unsettled)
    if not wanted or context.send_nothing:
        return
    ranges = multirange(wanted)
    failed = settlement.failed_items(context.conn, context.batch.batch_id, ranges)
    former = provider_batches.of_shard(context.conn, context.shard.shard_id)
    context.conn.commit()
    _postpone(context, wanted, failed)
    if wanted and context.blocked():
        context.note(f"{len(wanted)} items are not sent: the batch is BLOCKED")
        context.look_again_in(300)
        return
    for group in refused.apart(wanted, former, failed):
        while group and not context.send_nothing:
            handled = _one_file(context, group, failed)
            if handled is None:
                return
            for ordinal in handled:
                group.pop(ordinal, None)


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
    budget = _token_budget(context)
    if budget is not None and budget < next(iter(wanted.values())) and budget < (_cap(context) or 0):
        _no_room(context)
        return None
    learned = _learned_budget(context)
    budget = min((one for one in (budget, learned) if one is not None), default=None)
    file = render.one_file(context, secrets.token_hex(8), wanted, failed, budget)
    _refuse_too_long(context, file.too_long)
    if not file.ordinals:
        return file.too_long
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
    return file.ordinals + file.too_long


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
    provider_batches.lock_sending(context.conn, intent.job, intent.account, intent.model)
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
    too_large: list[int] = []
    for one in reversed(provider_batches.of_shard(context.conn, context.shard.shard_id)):
        if one.live:
            continue
        if one.refused != "capacity":
            break
        too_large.append(one.prompt_tokens)
    context.conn.commit()
    return too_large[-1] >> min(len(too_large), MOST_HALVINGS) if too_large else None

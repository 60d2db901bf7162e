"""Sending what no live provider batch carries: intent -> upload -> create, file by file, as far as limits allow."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import islice

from nightmill.domain.backoff import retry_delay_s
from nightmill.domain.failures import Failure, FailureClass
from nightmill.stages.run_shard import breaker, follow, refused_file, render, throttle
from nightmill.stages.run_shard.wake_up import WakeUp
from nightmill.storage import attempts, breakers, provider_batches, reuse, sending, settlement
from nightmill.storage.attempts import FailedItem
from nightmill.storage.fence import writing
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.ranges import multirange
from nightmill.storage.sending import Intent
from nightmill.storage.session import reading


def send_due(wake_up: WakeUp, unsettled: Mapping[int, int]) -> None:
    """Send those of the unsettled items (ordinal -> prompt tokens) that are not carried and wait for no retry round."""
    wanted = _candidates(wake_up, unsettled)
    if not wanted:
        return
    if wake_up.is_blocked():
        wake_up.note(f"{len(wanted)} items are not sent: the batch is BLOCKED")
        wake_up.look_again_in(300)
        return
    breaker.refuse_open(wake_up)
    if wake_up.send_nothing:
        return
    with reading(wake_up.conn):
        failed = attempts.failed_items(wake_up.conn, wake_up.batch.batch_id, multirange(wanted))
        former = provider_batches.of_shard(wake_up.conn, wake_up.shard.shard_id)
    _postpone(wake_up, wanted, failed)
    rest, groups = refused_file.split_suspects(wanted, former, failed)
    if _send_all(wake_up, rest, failed) and groups:
        if refused_file.is_one_tried(former):
            wake_up.look_again_in(wake_up.live.provider.poll_interval_s)
            return
        _one_file(wake_up, max(groups, key=len), failed)  # level by level: all halves before any quarter
        wake_up.look_again_in(wake_up.live.provider.poll_interval_s)


def _send_all(wake_up: WakeUp, wanted: dict[int, int], failed: Mapping[int, FailedItem]) -> bool:
    """Send file after file; whether that came to its end."""
    while wanted and not wake_up.send_nothing:
        handled = _one_file(wake_up, wanted, failed)
        if handled is None:
            return False
        for ordinal in handled:
            wanted.pop(ordinal, None)
    return not wake_up.send_nothing


def _postpone(wake_up: WakeUp, wanted: dict[int, int], failed: Mapping[int, FailedItem]) -> None:
    """Take out the items whose next round is not due yet. A round is what failed in one provider batch as often.

    When it is due is derived from the attempts themselves, so that a restarted task waits no shorter and no longer.
    The jitter is fixed per round.
    """
    rounds: dict[tuple[int, int], list[FailedItem]] = {}
    for one in failed.values():
        if one.failures:
            rounds.setdefault((one.provider_batch_id, one.failures), []).append(one)
    retry, now, waiting = wake_up.live.retry, wake_up.env.now(), 0
    for (provider_batch_id, failures), items in rounds.items():
        draw = random.Random(f"{provider_batch_id}/{failures}").random()
        delay_s = retry_delay_s(failures, retry.base_delay_s, retry.max_delay_s, draw)
        due = max(one.last_at for one in items) + timedelta(seconds=delay_s)
        if now < due:
            waiting += len(items)
            wake_up.wake_times.append(due)
            for one in items:
                wanted.pop(one.ordinal, None)
    if waiting:
        wake_up.note(f"{waiting} items wait for their next round")


def _candidates(wake_up: WakeUp, unsettled: Mapping[int, int]) -> dict[int, int]:
    """What of it could be sent, after settling what another batch answered meanwhile.

    A shard that was never awake before is as its planning left it, which looked for answers; should there be some by
    now, they are seen before anything is sent.
    """
    shard = wake_up.shard
    with reading(wake_up.conn):
        open_ones = [one for one in provider_batches.of_shard(wake_up.conn, shard.shard_id) if one.live]
        carried = {ordinal for one in open_ones for ordinal in one.carries()}
        wanted = {ordinal: tokens for ordinal, tokens in unsettled.items() if ordinal not in carried}
        if not wanted:
            return wanted
        ranges = multirange(wanted)
        elsewhere = sending.carried_elsewhere(wake_up.conn, shard.batch_id, wake_up.pinned.name, ranges)
    if elsewhere:
        wake_up.note(f"{len(elsewhere)} items wait for the answer that another batch is getting")
        wake_up.look_again_in(wake_up.live.provider.poll_interval_s * 2)
    if shard.lease > 1 and not wake_up.batch.options.reprocess:
        for ordinal in _answered_meanwhile(wake_up, wanted):
            wanted.pop(ordinal, None)
    return {ordinal: tokens for ordinal, tokens in wanted.items() if ordinal not in elsewhere}


def _answered(wake_up: WakeUp, ordinals: Iterable[int]) -> set[int]:
    """Those of the unsettled items whose key has a result that passed today's rules; collected for `reuse.settle`."""
    conn = wake_up.conn
    reuse.find_among(conn, wake_up.shard.batch_id, ordinals, wake_up.pinned.validators_hash)
    reuse.reject(conn, [ordinal for ordinal, _, _ in reuse.outdated(conn)])
    return set(reuse.collected(conn))


def _answered_meanwhile(wake_up: WakeUp, wanted: Iterable[int]) -> set[int]:
    """Settle those of the wanted items whose key has a result by now, and return them."""
    shard, conn = wake_up.shard, wake_up.conn
    with reading(conn):
        ordinals = _answered(wake_up, wanted)
    if ordinals:
        with writing(conn, wake_up.holder):
            reuse.settle(conn, shard.batch_id, shard.first_ordinal, shard.last_ordinal, wake_up.settling)
    return ordinals


def _one_file(wake_up: WakeUp, wanted: dict[int, int], failed: Mapping[int, FailedItem]) -> list[int] | None:
    """Send one file of the wanted items and return the items that are dealt with; None when nothing can go out now."""
    with reading(wake_up.conn):
        most = breaker.most_now(wake_up)
        if most == 0 or not throttle.is_open(wake_up):
            return None
    budget = _token_budget(wake_up)
    if budget is not None and budget < next(iter(wanted.values())) and budget < (_cap(wake_up) or 0):
        _no_room(wake_up)
        return None
    known, now = throttle.standing(wake_up), wake_up.env.now()
    learned = known.room(_enqueued(wake_up), now)
    if learned == 0:
        _no_room(wake_up)
        return None
    budget = min((one for one in (budget, learned) if one is not None), default=None)
    chosen = wanted if most is None else dict(islice(wanted.items(), most))
    file = render.one_file(wake_up, secrets.token_hex(8), chosen, failed, budget, known.file_limits(now))
    _refuse_too_long(wake_up, file.too_long)
    if not file.ordinals:
        return file.too_long
    one = _intended(wake_up, file, alone=most is not None)
    if one is None:
        return None
    follow.provider_batch(wake_up, one, file)
    file.path.unlink()
    return file.ordinals + file.too_long


def _intended(wake_up: WakeUp, file: render.RequestFile, *, alone: bool) -> ProviderBatch | None:
    """The provider batch of a file that goes out; None where something speaks against it by now. `alone`: no other one
    of its batch may be under way."""
    intent = Intent(
        job=wake_up.pinned.name,
        token=file.token,
        account=wake_up.account,
        adapter=wake_up.pinned.job.provider.adapter,
        model=wake_up.pinned.job.provider.model,
        ordinals=file.ordinals,
        prompt_tokens=file.prompt_tokens,
        file_bytes=file.file_bytes,
        enqueued_cap=_cap(wake_up),
    )
    try:
        with writing(wake_up.conn, wake_up.holder):
            return _intended_now(wake_up, intent, alone=alone)
    except _ProbedByAnother:
        return None


class _ProbedByAnother(Exception):
    """Another file of the account is its probe since a moment: the intent is taken back."""


def _intended_now(wake_up: WakeUp, intent: Intent, *, alone: bool) -> ProviderBatch | None:
    """The intent, in the caller's transaction. It takes the job's lock, so that of two batches only one sends a key."""
    sending.lock_sending(wake_up.conn, intent.job, intent.account)
    if _taken_elsewhere(wake_up, intent):
        return None
    if alone and breakers.standing(wake_up.conn, wake_up.batch.batch_id).in_flight:
        wake_up.look_again_in(wake_up.live.provider.poll_interval_s * 4)
        return None
    one = sending.intend(wake_up.conn, wake_up.holder, intent)
    if one is None:
        _no_room(wake_up)
    elif not throttle.admits(wake_up, one):
        raise _ProbedByAnother
    return one


def _refuse_too_long(wake_up: WakeUp, ordinals: list[int]) -> None:
    """Dead-letter items whose request alone is larger than a file may be."""
    if not ordinals:
        return
    message = (
        f"never sent: its request line is longer than a file of {wake_up.limits.bytes_per_file} bytes; set "
        "provider.context_window_tokens, or shorten the text in the source query"
    )
    failure = Failure(FailureClass.INPUT, "line_too_long", message)
    with writing(wake_up.conn, wake_up.holder):
        settlement.refuse_unsent(wake_up.conn, wake_up.batch.batch_id, ordinals, failure)
    wake_up.note(f"{len(ordinals)} items are too long for a file, dead-lettered")


def _taken_elsewhere(wake_up: WakeUp, intent: Intent) -> bool:
    """Whether another batch began to carry some of these keys, or answered them, while the file was rendered."""
    ranges = multirange(intent.ordinals)
    elsewhere = sending.carried_elsewhere(wake_up.conn, wake_up.batch.batch_id, intent.job, ranges)
    if not wake_up.batch.options.reprocess:
        elsewhere |= _answered(wake_up, intent.ordinals)
    if not elsewhere:
        return False
    wake_up.note(f"{len(elsewhere)} items were sent by another batch just now; the others follow")
    wake_up.look_again_in(wake_up.live.provider.poll_interval_s)
    return True


def _no_room(wake_up: WakeUp) -> None:
    wake_up.note("the enqueued-token limit of the account leaves no room now")
    wake_up.look_again_in(wake_up.live.provider.poll_interval_s)


def _cap(wake_up: WakeUp) -> int | None:
    return wake_up.limits.enqueued_prompt_tokens


def _token_budget(wake_up: WakeUp) -> int | None:
    """Prompt tokens that the account takes now, as job.yaml has it."""
    cap = _cap(wake_up)
    return None if cap is None else max(0, cap - _enqueued(wake_up))


def _enqueued(wake_up: WakeUp) -> int:
    """Prompt tokens of the account's files of this model that have not ended."""
    with reading(wake_up.conn):
        return sending.enqueued_tokens(wake_up.conn, wake_up.account, wake_up.pinned.job.provider.model)

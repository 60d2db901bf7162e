"""Why a batch or a shard waits, in sentences for a person who has to decide whether to do something."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import assert_never

from nightmill.domain.gates import GateName
from nightmill.domain.progress import LATE
from nightmill.domain.states import BatchState, ProviderBatchState, ShardState
from nightmill.storage.batches import Batch
from nightmill.storage.console_reads import Evidence, ShardStanding

SHARD_WORDS = {
    ShardState.QUEUED: "not started",
    ShardState.RUNNING: "under way",
    ShardState.RETRY_WAIT: "waiting to send",
    ShardState.SETTLED: "settled",
    ShardState.CANCELLED: "cancelled",
}


def of_batch(batch: Batch, shards: Sequence[ShardStanding], evidence: Sequence[Evidence], now: datetime) -> list[str]:
    """What the batch waits for now."""
    match batch.state:
        case BatchState.CREATED if batch.freezing_failed:
            return [f"Freezing failed ({batch.state_reason}). When that is mended, clear the task {batch.blocked_by}."]
        case BatchState.CREATED:
            return [f"The source is being frozen ({batch.state_reason}). If its task failed, the task's log says why."]
        case BatchState.PLANNING:
            return [
                "The manifest is frozen. plan_shards reuses what was answered before and cuts the rest into shards; if "
                "that task failed, its log says why."
            ]
        case BatchState.QUEUED:
            return [
                "Shards are planned. Nothing was sent yet: the first task of run_shard has not started. If preflight "
                "failed, its log says why."
            ]
        case BatchState.RUNNING:
            return _running(shards, evidence, now)
        case BatchState.VALIDATING:
            return [
                "Every item is settled. What is left are the tasks behind run_shard: checks, gates, publish. If one of "
                "them failed, its log says why."
            ]
        case BatchState.STAGED:
            return [
                "It is a preview, and waits for a person: readers do not see it, and nothing of it goes on by itself."
            ]
        case BatchState.BLOCKED:
            return _blocked(batch)
        case (
            BatchState.PUBLISHED
            | BatchState.ESTIMATED
            | BatchState.REJECTED
            | BatchState.PARTIAL_FAILED
            | BatchState.CANCELLED
        ):
            return [f"It waits for nothing: it has ended ({batch.state_reason}).", *_without_data(batch)]
        case _:
            assert_never(batch.state)


def of_shard(batch: Batch, shard: ShardStanding, evidence: Sequence[Evidence], now: datetime) -> list[str]:
    """What the shard waits for now."""
    if shard.ended or batch.ended:
        return [f"It waits for nothing: the shard is {SHARD_WORDS[shard.state]}, its batch {batch.state}."]
    lines = _blocked(batch) if batch.state is BatchState.BLOCKED else []
    lines += [of_provider_batch(one, now) for one in evidence if one.live]
    if shard.failed_at is not None:
        return [*lines, *_failed(batch, shard, now)]
    if shard.state is ShardState.QUEUED:
        return [*lines, "It has not started: its task waits for a free slot of its pool or for Airflow's scheduler."]
    if shard.wake_at is None:
        return [*lines, f"Its task is at work just now ({shard.state_reason})."]
    if shard.wake_at <= now:
        return [*lines, _due(shard, shard.wake_at, now)]
    return [
        *lines,
        f"What its last wake-up saw: {shard.state_reason}.",
        f"It wakes up by {shard.wake_at:%H:%M:%S} UTC, or as soon as the provider reports a change. "
        "No worker is held meanwhile.",
    ]


def _without_data(batch: Batch) -> list[str]:
    if not batch.without_data:
        return []
    return ["Readers see nothing of it. Clear freeze_snapshot of its run for a new batch, which reuses every answer."]


def _failed(batch: Batch, shard: ShardStanding, now: datetime) -> list[str]:
    assert shard.failed_at is not None
    name = f"shard {shard.shard_id}"
    ago = _span(now - shard.failed_at)
    lines = [f"Its task failed {ago} ago: {shard.state_reason.rstrip('.')}."]
    if batch.state is BatchState.BLOCKED and batch.blocked_by == name:
        return lines  # what to do stands above
    return [
        *lines,
        "Airflow tries it again while tries are left; where the task is red, clear run_shard of this shard.",
    ]


def _due(shard: ShardStanding, wake_at: datetime, now: datetime) -> str:
    late = now - wake_at
    if late <= LATE:
        return f"It is due ({shard.state_reason}): its task is at work or about to start."
    return (
        f"It was due {_span(late)} ago ({shard.state_reason}), and no wake-up has ended since: its task works for long,"
        " was killed, or waits for a slot; or the triggerer is down. Look at run_shard in Airflow, and clear it where "
        "it is red."
    )


def of_provider_batch(one: Evidence, now: datetime) -> str:
    """What one provider batch waits for."""
    name = f"Provider batch {one.provider_batch_id}"
    match one.state:
        case ProviderBatchState.INTENT:
            staged = "at the provider, and not sent yet" if one.input_ref else "not sent yet"
            return f"{name}: its requests are {staged}."
        case ProviderBatchState.CREATING:
            return f"{name}: its create call went out; whether the provider took it is being looked up."
        case ProviderBatchState.SUBMITTED:
            total = one.requests_total or one.requests
            since = f", for {_span(now - one.submitted_at)}" if one.submitted_at else ""
            return (
                f"{name}: the provider has it as {one.provider_id} and says {one.raw_status}{since}; "
                f"{one.done} of {total} requests are done."
            )
        case ProviderBatchState.ENDED:
            return f"{name}: the provider says {one.raw_status}; its results are being collected."
        case ProviderBatchState.COLLECTED | ProviderBatchState.ABANDONED:
            return f"{name}: {one.state_reason}."
        case _:
            assert_never(one.state)


def _running(shards: Sequence[ShardStanding], evidence: Sequence[Evidence], now: datetime) -> list[str]:
    per_state = Counter(shard.state for shard in shards)
    words = ", ".join(f"{per_state[state]} {words}" for state, words in SHARD_WORDS.items() if per_state[state])
    lines = [f"{len(shards)} shard{'' if len(shards) == 1 else 's'}: {words}."]
    if failed := [str(shard.shard_id) for shard in shards if shard.failed_at is not None]:
        lines.append(f"The task of shard {', '.join(failed)} failed: its page says why.")
    live = [one for one in evidence if one.live]
    if len(live) == 1:
        return [*lines, of_provider_batch(live[0], now)]
    if live:
        done, total = sum(one.done for one in live), sum(one.requests for one in live)
        told = Counter(one.raw_status or one.state.lower() for one in live)
        statuses = ", ".join(f"{count} {status}" for status, count in sorted(told.items()))
        lines.append(f"{len(live)} provider batches: {statuses}; {done:,} of {total:,} requests are done.")
    return lines


def _blocked(batch: Batch) -> list[str]:
    if batch.blocked_by == GateName.APPROVE:
        return [
            f"The batch waits for a person: {batch.state_reason}.",
            "Answer in Airflow, on the task approve; where it does not wait any more, clear it to be asked again.",
        ]
    return [
        f"The batch waits for a person: {batch.state_reason}",
        f"When that is mended, clear the task of {batch.task_to_clear}; what was sent is still collected.",
    ]


def _span(span: timedelta) -> str:
    seconds = max(0, int(span.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"

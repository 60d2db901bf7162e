"""Where a batch stands, for people: in one line, and as a block of lines."""

from __future__ import annotations

from datetime import datetime

from nightmill.domain.progress import one_line, refusals, repeats, waiting
from nightmill.domain.receipt import in_words, odd_in_words
from nightmill.domain.states import BatchState
from nightmill.domain.wording import dollars, duration, pluralised
from nightmill.jobs.rules import gaps
from nightmill.operations.status.standing import Standing
from nightmill.services.environment import utc_now
from nightmill.storage.batches import Batch

_GAVE_UP = {"dead_lettered": "dead letter", "in_review": "item in review"}
_UNDER_WAY = frozenset({BatchState.QUEUED, BatchState.RUNNING, BatchState.BLOCKED})


def line(one: Standing, *, to_go: bool = True) -> str:
    """One batch in one line. `to_go`: with the time left, which differs at each look."""
    return "; ".join((f"{_head(one)}: {_how_far(one, utc_now(), to_go)}", *(f"ALERT {alert}" for alert in one.alerts)))


def _how_far(one: Standing, now: datetime, to_go: bool) -> str:
    planned = one.progress.shards or one.batch.state not in (BatchState.CREATED, BatchState.PLANNING)
    if not planned:
        return "not planned yet"
    gave_up = [pluralised(one.buckets[bucket], noun) for bucket, noun in _GAVE_UP.items() if one.buckets.get(bucket)]
    parts = [
        one_line(one.progress, now, one.buckets.get("unsettled", 0), to_go=to_go),
        repeats(one.progress),
        refusals(one.progress),
        *gave_up,
        waiting(one.progress, now) if one.batch.state in _UNDER_WAY else "",
    ]
    return "; ".join(part for part in parts if part)


def _head(one: Standing) -> str:
    batch = one.batch
    return f"{batch.job}: batch {batch.batch_id} {batch.state} ({' '.join(batch.state_reason.split())})"


def block(one: Standing) -> list[str]:
    """One batch in some lines; what there is nothing of is left out."""
    batch, seen = one.batch, one.progress
    lines = [_head(one), _row("run", f"{batch.run_id}, since {batch.created_at:%Y-%m-%d %H:%M:%S} UTC")]
    states = ", ".join(f"{shard.shards} {shard.state}" for shard in seen.shards)
    if states:
        lines.append(_row("shards", states))
    if one.buckets:
        lines.append(_row("items", ", ".join(f"{items:,} {bucket}" for bucket, items in sorted(one.buckets.items()))))
    lines += [_row("gaps", text) for text in gaps.told(one.gap_facts or {})]
    for sent in seen.provider_batches:
        what = f"{pluralised(sent.batches, 'provider batch')} {sent.state}"
        status_there = f", {sent.raw_status} {sent.answered:,}/{sent.requests:,}" if sent.raw_status else ""
        lines.append(_row("provider", what + status_there))
    told = [("repeated", repeats(seen)), ("refused", refusals(seen))]
    if batch.state in _UNDER_WAY:
        told.append(("waits", waiting(seen, utc_now())))
    lines += [_row(name, text) for name, text in told if text]
    lines += _money(one)
    if one.gates:
        lines.append(_row("gates", ", ".join(f"{gate} {verdict}" for gate, verdict in one.gates)))
    if batch.blocked_by and batch.state is BatchState.BLOCKED:
        lines.append(_row("to do", _to_do(batch)))
    lines += [_row("ALERT", alert) for alert in one.alerts]
    return lines


def _to_do(batch: Batch) -> str:
    if batch.blocked_by == "approve" and (batch.state_reason or "").startswith("waits"):
        return "answer under Required Actions of its DAG in Airflow; clearing approve asks again"
    return f"act on the reason above, then clear {batch.task_to_clear} of the run"


def _money(one: Standing) -> list[str]:
    lines = []
    if one.spent.requests:
        lines.append(_row("tokens", in_words(one.spent)))
        lines += [_row("usage", text) for text in odd_in_words(one.spent)]
        most = (one.batch.estimate or {}).get("batch_price")
        estimated = f" (estimate: at most {dollars(most)} without retries)" if most else ""
        lines.append(_row("cost", dollars(one.cost) + estimated))
    if one.seconds_left:
        lines.append(_row("to go", f"about {duration(one.seconds_left)} at the pace so far"))
    return lines


def _row(name: str, text: str) -> str:
    return f"  {name:<10}{text}"

"""The read models of the console's pages. Money is US dollars; every moment is UTC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from nightmill.console import reasons
from nightmill.domain.pricing import Price, batch_cost, price_on
from nightmill.domain.receipt import Receipt, Tokens, receipt
from nightmill.domain.states import ProviderBatchState
from nightmill.jobs.rules.gaps import told
from nightmill.storage import (
    batches,
    console_reads,
    gaps,
    holds,
    prices,
    publications,
    sending,
    usage,
    view_history,
)
from nightmill.storage.batches import Batch
from nightmill.storage.console_reads import Attempts, Evidence, Request, ShardStanding, Step, Verdict
from nightmill.storage.holds import Hold
from nightmill.storage.payloads import evidence_path
from nightmill.storage.publications import Published
from nightmill.storage.session import Connection
from nightmill.storage.view_history import Event

NEWEST_PUBLICATIONS = 10


@dataclass(frozen=True, slots=True)
class BatchPage:
    """One batch. `receipt` is None where nothing was sent or the model has no price."""

    at: datetime
    batch: Batch
    request: Request
    reasons: list[str]
    buckets: dict[str, int]
    gaps: list[tuple[str, int]]
    gap_lines: list[str]
    shards: list[ShardStanding]
    evidence: dict[int, list[Evidence]]
    spent: Tokens
    receipt: Receipt | None
    verdicts: list[Verdict]
    shown: Published | None
    held: list[Hold]
    publications: list[Event]
    history: list[Step]


@dataclass(frozen=True, slots=True)
class ShardPage:
    """One shard. `raw_files` says per provider batch where its result files are kept; `enqueued` are the prompt
    tokens that wait at the provider per model of this account, whoever sent them."""

    at: datetime
    batch: Batch
    shard: ShardStanding
    reasons: list[str]
    buckets: dict[str, int]
    evidence: list[Evidence]
    raw_files: dict[int, list[str]]
    attempts: list[Attempts]
    cost: Decimal | None
    enqueued: list[tuple[str, int]]
    history: list[Step]


def batch_page(conn: Connection, dag_id: str, run_id: str, now: datetime) -> BatchPage | None:
    """The newest batch of a run, or None when the run has none (yet)."""
    batch = batches.newest_of_run(conn, dag_id, run_id)
    if batch is None:
        return None
    shards = console_reads.shards(conn, batch.batch_id)
    sent = console_reads.of_shards(conn, [shard.shard_id for shard in shards])
    spent, reused = usage.spent(conn, batch.batch_id), usage.reused(conn, batch.batch_id)
    price = _price(conn, batch, sent)
    return BatchPage(
        at=now,
        batch=batch,
        request=console_reads.request(conn, batch.batch_id),
        reasons=reasons.of_batch(batch, shards, sent, now),
        buckets=batches.bucket_counts(conn, batch.batch_id),
        gaps=batches.gaps_by_code(conn, batch.batch_id),
        gap_lines=told(gaps.facts(conn, batch.batch_id) or {}),
        shards=shards,
        evidence={shard.shard_id: [one for one in sent if one.shard_id == shard.shard_id] for shard in shards},
        spent=spent,
        receipt=receipt(price, spent, reused) if price else None,
        verdicts=console_reads.verdicts(conn, batch.batch_id),
        shown=publications.current(conn, batch.view_name),
        held=holds.open_of(conn, batch.view_name),
        publications=view_history.history(conn, batch.view_name, NEWEST_PUBLICATIONS),
        history=console_reads.history(conn, batch.batch_id, "batch", batch.batch_id),
    )


def shard_page(conn: Connection, payload_root: str, dag_id: str, shard_id: int, now: datetime) -> ShardPage | None:
    """One shard of the DAG, or None when there is none with this id."""
    shard = console_reads.shard(conn, dag_id, shard_id)
    if shard is None:
        return None
    batch = batches.get(conn, shard.batch_id)
    sent = console_reads.of_shards(conn, [shard_id])
    stretch = (batch.batch_id, shard.first_ordinal, shard.last_ordinal)
    attempts = console_reads.attempts(conn, *stretch)
    price = _price(conn, batch, sent)
    return ShardPage(
        at=now,
        batch=batch,
        shard=shard,
        reasons=reasons.of_shard(batch, shard, sent, now),
        buckets=dict(console_reads.buckets(conn, *stretch)),
        evidence=sent,
        raw_files={one.provider_batch_id: _raw_files(payload_root, batch, one) for one in sent},
        attempts=attempts,
        cost=_cost(price, attempts) if price else None,
        enqueued=_enqueued(conn, sent),
        history=console_reads.history(conn, batch.batch_id, "shard", shard_id, [one.provider_batch_id for one in sent]),
    )


def _price(conn: Connection, batch: Batch, sent: Sequence[Evidence]) -> Price | None:
    """A batch has one model; before anything was sent it costs nothing."""
    if not sent:
        return None
    return price_on(prices.of_model(conn, sent[0].model), sent[0].model, batch.created_at.date())


def _cost(price: Price, attempts: Sequence[Attempts]) -> Decimal:
    costs = (batch_cost(price, one.prompt, one.cached, one.completion, one.cache_written) for one in attempts)
    return sum(costs, Decimal(0))


def _enqueued(conn: Connection, sent: Sequence[Evidence]) -> list[tuple[str, int]]:
    pairs = sorted({(one.model, one.account) for one in sent if one.live})
    return [(model, sending.enqueued_tokens(conn, account, model)) for model, account in pairs]


def _raw_files(payload_root: str, batch: Batch, one: Evidence) -> list[str]:
    """Where collecting has kept the result files."""
    if one.state is not ProviderBatchState.COLLECTED:
        return []
    root = payload_root.rstrip("/")
    return [f"{root}/{evidence_path(batch.job, batch.batch_id, one.token, name)}" for name in one.result_refs]

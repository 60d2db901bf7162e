"""Where batches stand now, read from the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NoReturn

from nightmill.domain.errors import ConfigError
from nightmill.domain.pricing import price_on
from nightmill.domain.progress import Progress, seconds_left
from nightmill.domain.receipt import Tokens, cost
from nightmill.domain.states import BatchState
from nightmill.domain.suggestions import aside, listed
from nightmill.jobs.rules.dead_letters import breaches
from nightmill.jobs.rules.gaps import Facts
from nightmill.services.environment import Environment
from nightmill.storage import batches, contracts, dead_letters, gaps, gates, holds, prices, progress, usage
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection


@dataclass(frozen=True, slots=True)
class Standing:
    """One batch at a moment. `cost` in US dollars is None where the model has no price; `seconds_left` is None before
    the first answer and outside RUNNING; `gates` are the newest verdicts in words; `alerts` say what
    only a person can mend, which of the job's limits its dead letters break, and what of its view is held; `gap_facts`
    are None before it is reconciled."""

    batch: Batch
    model: str
    buckets: dict[str, int]
    progress: Progress
    spent: Tokens
    cost: Decimal | None
    seconds_left: float | None
    alerts: list[str]
    gates: tuple[tuple[str, str], ...] = ()
    gap_facts: Facts | None = None


def look(env: Environment, batch_id: int | None = None, job: str | None = None) -> list[Standing]:
    """One batch; or every open one and the newest closed one of each job, or of one. Raises IllegalTransition for a
    batch that does not exist, ConfigError for a job that has none."""
    with env.ledger() as conn:
        conn.read_only = True
        chosen = batches.open_or_newest(conn) if batch_id is None else [batches.get(conn, batch_id)]
        if job is not None:
            chosen = [one for one in chosen if one.job == job] or _refuse_unknown(batches.jobs(conn), job)
        return [_standing(conn, batch, env.now()) for batch in chosen]


def _refuse_unknown(jobs: set[str], job: str) -> NoReturn:
    raise ConfigError(
        f"No batch of job {job!r} is in the ledger{aside(job, jobs)}.",
        f"There are batches of {listed(jobs)}." if jobs else "Trigger a run of it first.",
    )


def _standing(conn: Connection, batch: Batch, now: datetime) -> Standing:
    job = contracts.load(conn, batch.contract_id).job
    provider = job.provider
    price = price_on(prices.of_model(conn, provider.model), provider.model, batch.created_at.date())
    spent = usage.spent(conn, batch.batch_id)
    buckets = batches.bucket_counts(conn, batch.batch_id) if batch.frozen_at else {}
    seen = progress.with_attempts(conn, batch.batch_id)
    running = batch.state is BatchState.RUNNING
    return Standing(
        batch=batch,
        model=provider.model,
        buckets=buckets,
        progress=seen,
        spent=spent,
        cost=cost(price, spent) if price else None,
        seconds_left=seconds_left(seen, seen.answered_of(buckets.get("unsettled", 0)), now) if running else None,
        alerts=[
            *_freezing_failed(batch),
            *breaches(job.dead_letters, *dead_letters.standing(conn, batch.batch_id), now),
            *(f"{hold}. Remedy: {hold.release}." for hold in holds.open_of(conn, batch.view_name)),
        ],
        gates=tuple((one.gate, one.word) for one in gates.newest(conn, batch.holder)),
        gap_facts=gaps.facts(conn, batch.batch_id),
    )


def _freezing_failed(batch: Batch) -> list[str]:
    if not batch.freezing_failed:
        return []
    return [
        f"freezing failed, and nobody tries again. Remedy: mend what the reason says, then clear {batch.blocked_by} of "
        f"run {batch.run_id}; or cancel: python -m nightmill cancel --batch {batch.batch_id}."
    ]

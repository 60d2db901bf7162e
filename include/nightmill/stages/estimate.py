"""estimate: what a run would send and cost, from a read of the source. Writes nothing; not a task, a person's command.

It measures rows by the freeze's own code and looks keys up in the ledger, so that it says what a dry run would say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from nightmill.domain.contract import JobDefinition
from nightmill.domain.estimate import Estimate, estimate
from nightmill.domain.filters import as_json, chosen
from nightmill.domain.pricing import price_on
from nightmill.domain.priority import Priority, room_for
from nightmill.domain.shards import shard_count
from nightmill.environment import Environment
from nightmill.storage import prices, reuse
from nightmill.storage.items import ItemRow
from nightmill.storage.ledger import Connection
from nightmill.storage.manifest import Manifest
from nightmill.storage.sources import SourceSnapshot
from nightmill.validators.definition import check_definition

CHUNK = 5_000  # keys in one look-up


@dataclass(frozen=True, slots=True)
class Question:
    """What a run would ask for: the trigger form's values."""

    limit: int | None = None
    reprocess: bool = False
    priority: str = Priority.NORMAL
    filters: dict[str, Any] = field(default_factory=dict)
    data_interval_start: datetime | None = None
    data_interval_end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """The estimate, and what else was seen: items that are never sent, keys that gave up before, and stored answers
    that will be checked again by today's rules (counted as reused)."""

    estimate: Estimate
    parameters: dict[str, Any]
    never_sent: int
    gave_up: int
    checked_again: int


@dataclass(slots=True)
class _Sums:
    planned: int = 0
    to_send: int = 0
    prompt_tokens: int = 0
    never_sent: int = 0
    reused: int = 0
    checked_again: int = 0
    gave_up: int = 0


def run(env: Environment, live: JobDefinition, question: Question) -> Forecast:
    """Read the source and add up. Raises what a freeze would raise for rows that cannot be frozen: for ids that come
    twice first, before anything is counted."""
    check_definition(live)
    source, provider = live.job.source, live.job.provider
    bound = _bound(live, question)
    manifest = Manifest(live, lambda _line: None)
    with env.ledger() as conn, SourceSnapshot(env.source(source.conn_id), source, live.payload_columns) as snapshot:
        conn.read_only = True
        conn.autocommit = True
        snapshot.refuse_doubled_ids(bound, question.limit)
        rows = manifest.rows(snapshot.rows(bound, question.limit))
        sums = _add_up(conn, live, rows, reprocess=question.reprocess)
        price = price_on(prices.of_model(conn, provider.model), provider.model, env.now().date())
    shards = live.job.shards
    worked_out = estimate(
        planned=sums.planned,
        to_send=sums.to_send,
        reused=sums.reused,
        shards=shard_count(sums.to_send, sums.prompt_tokens, shards.count, shards.target_tokens),
        prompt_tokens=sums.prompt_tokens,
        output_reserve=provider.output_reserve_tokens,
        price=price,
        enqueued_cap=room_for(question.priority, provider.limits.enqueued_prompt_tokens),
        turnaround_s=provider.expected_turnaround_s,
    )
    return Forecast(worked_out, as_json(bound), sums.never_sent, sums.gave_up, sums.checked_again)


def _bound(live: JobDefinition, question: Question) -> dict[str, Any]:
    interval = {name: getattr(question, name) for name in ("data_interval_start", "data_interval_end")}
    known = {name: value for name, value in interval.items() if value is not None}
    return known | chosen(live.job.source.filters, question.filters)


def _add_up(conn: Connection, live: JobDefinition, rows: Iterable[ItemRow], *, reprocess: bool) -> _Sums:
    sums = _Sums()
    sendable = _sendable(rows, sums)
    while chunk := list(islice(sendable, CHUNK)):
        found = [] if reprocess else reuse.settled_keys(conn, [key for key, _ in chunk], live.validators_hash)
        settled = {one.key for one in found}
        open_tokens = [tokens for key, tokens in chunk if key not in settled]
        sums.to_send += len(open_tokens)
        sums.prompt_tokens += sum(open_tokens)
        sums.reused += sum(one.reused for one in found)
        sums.checked_again += sum(one.outdated for one in found)
        sums.gave_up += sum(not one.reused for one in found)
    return sums


def _sendable(rows: Iterable[ItemRow], sums: _Sums) -> Iterator[tuple[bytes, int]]:
    """Key and tokens of each row that may be sent; the others are counted on the way."""
    for _, key, _, _, _, _, _, tokens, skip_reason in rows:
        sums.planned += 1
        if skip_reason is None:
            yield key, tokens
        else:
            sums.never_sent += 1

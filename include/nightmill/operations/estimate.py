"""estimate: what a run would send and cost, from a read of the source. Writes nothing; not a task, a person's command.

It measures rows by the freeze's own code and looks keys up in the ledger, so that it says what a dry run would say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from nightmill.checks.inputs import InputChecker, judged_anew
from nightmill.domain.estimate import Estimate, estimate
from nightmill.domain.pricing import price_on
from nightmill.domain.priority import Priority, room_for
from nightmill.domain.shards import shard_count
from nightmill.jobs.check.definition import check_definition
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.filters import as_json, chosen
from nightmill.services.environment import Environment, token_counter
from nightmill.storage import items, prices, reuse
from nightmill.storage.items import ItemRow
from nightmill.storage.manifest import Manifest
from nightmill.storage.reuse import SettledKey
from nightmill.storage.session import Connection
from nightmill.storage.sources import SourceSnapshot

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
    manifest = Manifest(live, InputChecker(live, token_counter(live)).measure, lambda _line: None)
    with env.ledger() as conn, SourceSnapshot(env.source(source.conn_id), source, live.columns_read) as snapshot:
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


def _add_up(conn: Connection, live: JobDefinition, rows: Iterator[ItemRow], *, reprocess: bool) -> _Sums:
    sums = _Sums()
    while chunk := list(islice(rows, CHUNK)):
        settled = {one.key: one for one in _settled(conn, live, [row[1] for row in chunk])}
        _refuse_changed_contents(chunk, settled)
        sums.planned += len(chunk)
        for _, key, _, _, _, _, _, tokens, skip_reason, *_ in chunk:
            if skip_reason is not None:
                sums.never_sent += 1
            elif reprocess or key not in settled:
                sums.to_send += 1
                sums.prompt_tokens += tokens
            else:
                sums.reused += settled[key].reused
                sums.checked_again += settled[key].outdated
                sums.gave_up += not settled[key].reused
    return sums


def _settled(conn: Connection, live: JobDefinition, keys: Sequence[bytes]) -> list[SettledKey]:
    return reuse.settled_keys(conn, keys, live.validators_hash, judged_anew())


def _refuse_changed_contents(chunk: Sequence[ItemRow], settled: Mapping[bytes, SettledKey]) -> None:
    changed = [
        (source_id, version)
        for _, key, source_id, version, content, *_ in chunk
        if key in settled and settled[key].content_hash not in (None, content)
    ]
    if changed:
        raise items.changed_contents(sorted(changed)[:3])

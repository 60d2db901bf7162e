"""Settling items: what came back becomes attempts, results, outcomes and staging rows, set by set.

Everything here runs inside the caller's transaction, one chunk of well under a second in each. The caller enters the
fence first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson
import psycopg
from psycopg import errors

from nightmill.domain.errors import Unstorable
from nightmill.domain.failures import EndedAs, Failure
from nightmill.domain.outcomes import CitedSpan
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.output.columns import Column
from nightmill.jobs.rules.run_options import RunOptions
from nightmill.jobs.settings.job import Job
from nightmill.storage import sql
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.session import Connection, refusals


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """What one request came to: an accepted answer, or a failure. Tokens are None where the provider did not say, and
    where what it said cannot be: `odd_usage` is that.

    `sent_upstream` is False where the provider never executed it. `retryable` says whether another attempt can help
    where more is known than the failure's class; None = as the class says.

    A Struct, because one is made per item: a frozen dataclass takes ten times as long to make.
    """

    ordinal: int
    failure: Failure | None
    answer: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    citations: tuple[CitedSpan, ...] = ()
    uncached_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    odd_usage: Mapping[str, Any] | None = None
    model: str | None = None
    finish_reason: str | None = None
    sent_upstream: bool = True
    retryable: bool | None = None


class Retries(msgspec.Struct, frozen=True):
    """How often an item may be asked for again: attempts in all, and failures of a class that are followed by another
    attempt. `exhausted` is its outcome where the answers were never accepted."""

    max_attempts: int = 1
    transient: int = 0
    output: int = 0
    exhausted: EndedAs = "dead_lettered"

    @classmethod
    def of(cls, job: Job) -> Retries:
        """As a job's live settings say."""
        return cls(job.retry.max_attempts, job.retry.transient, job.repair.attempts, job.repair.exhausted)


NO_RETRY = Retries()


@dataclass(frozen=True, slots=True)
class Settling:
    """What is the same for all arrivals of one batch."""

    job: str
    view: str
    columns: list[Column]
    contract_id: int
    prompt_version: str
    validators_hash: str
    retries: Retries
    reprocess: bool
    reuse_only: bool = False  # of a cancelled batch: answers are kept for later runs, nothing is settled

    @classmethod
    def of(cls, pinned: JobDefinition, contract_id: int, options: RunOptions, retries: Retries = NO_RETRY) -> Settling:
        """From a batch's pinned contract and options."""
        return cls(
            job=pinned.name,
            view=pinned.job.publish.view,
            columns=pinned.columns,
            contract_id=contract_id,
            prompt_version=pinned.versions.prompt_version,
            validators_hash=pinned.validators_hash,
            retries=retries,
            reprocess=options.reprocess,
        )

    @property
    def parts(self) -> dict[str, Any]:
        """Identifiers of the typed table, for the queries."""
        return {
            "rows": sql.rows_table(self.view),
            "names": sql.names(self.columns),
            "typed": sql.typed(self.columns, "typed"),
            "record": sql.record(self.columns),
        }


@dataclass(frozen=True, slots=True)
class Settled:
    """How many items of a chunk were accepted, dead-lettered, put in review, or stay for another round."""

    accepted: int = 0
    dead_lettered: int = 0
    in_review: int = 0
    again: int = 0

    def __add__(self, other: Settled) -> Settled:
        return Settled(
            self.accepted + other.accepted,
            self.dead_lettered + other.dead_lettered,
            self.in_review + other.in_review,
            self.again + other.again,
        )


# Text format: JSON and arrays go as text: a dumper for jsonb would encode once more, the one for lists is slow.
_ARRIVED_TYPES = (
    "int8", "text", "text", "text", "bool", "bool", "text", "text", "text", "int4", "int4", "int4", "int4", "int4",
    "text", "text", "text", "bool",
)  # fmt: skip


def prepare(conn: Connection) -> None:
    """Make the session's temporary tables; once per connection."""
    conn.execute(sql.text("outcome/make_arrived"))


def settle_arrivals(conn: Connection, batch: ProviderBatch, chunk: Iterable[Arrival], settling: Settling) -> Settled:
    """Settle one chunk: attempts for all, results and staging rows for the accepted, dead letters, or places in
    review, for those that cannot or may not be tried again. Fastest when the arrivals lie close together in item order.

    Raises Unstorable when the database cannot hold one of them; the transaction must then be rolled back.
    """
    arrivals = list(chunk)
    if not arrivals:
        return Settled()
    try:
        return _settle(conn, batch, arrivals, settling)
    except (psycopg.DataError, TypeError, ValueError):  # these quote the answer
        raise Unstorable("An answer does not fit its columns.", "The caller settles the chunk in halves.") from None


def _settle(conn: Connection, batch: ProviderBatch, arrivals: list[Arrival], settling: Settling) -> Settled:
    with conn.cursor() as cursor, cursor.copy(sql.text("outcome/copy_arrived")) as copy:
        copy.set_types(_ARRIVED_TYPES)
        for arrival in arrivals:
            copy.write_row(_row(arrival))
    conn.execute(sql.BY_INDEX)  # arrivals can lie far apart in the manifest
    failed = sum(arrival.failure is not None for arrival in arrivals)
    values = {
        "batch_id": batch.batch_id,
        "provider_batch_id": batch.provider_batch_id,
        "first": min(arrival.ordinal for arrival in arrivals),
        "last": max(arrival.ordinal for arrival in arrivals),
        "job": settling.job,
        "contract_id": settling.contract_id,
        "prompt_version": settling.prompt_version,
        "validators_hash": settling.validators_hash,
        "intent_at": batch.intent_at,
        "max_attempts": settling.retries.max_attempts,
        "transient_retries": settling.retries.transient,
        "output_retries": settling.retries.output,
        "exhausted": settling.retries.exhausted,
        "reprocess": settling.reprocess,
    }
    with refusals():
        conn.execute(sql.text("attempt/record"), values)
        if settling.reuse_only:
            accepted, dead, in_review = _keep_for_reuse(conn, values), 0, 0
        else:
            accepted = _settle_accepted(conn, settling, values, len(arrivals) - failed)
            dead, in_review = _settle_given_up(conn, values) if failed else (0, 0)
    return Settled(accepted, dead, in_review, len(arrivals) - accepted - dead - in_review)


def _settle_accepted(conn: Connection, settling: Settling, values: dict[str, Any], expected: int) -> int:
    """Store the accepted answers and settle their items; returns how many. Nearly always all keys are new. Where one
    has a result already, its chunk takes the slower path: superseded by a new revision where the rules say so, linked
    to the effective one otherwise."""
    if not expected:
        return 0
    if not settling.reprocess:
        try:
            with conn.transaction():
                return conn.execute(sql.text("outcome/settle_accepted").format(**settling.parts), values).rowcount
        except errors.UniqueViolation as fault:
            if fault.diag.constraint_name != "result_effective":
                raise
    conn.execute(sql.text("result/supersede"), values)
    conn.execute(sql.text("result/store_revisions"), values)
    return conn.execute(sql.text("outcome/link_accepted").format(**settling.parts), values).rowcount


def _settle_given_up(conn: Connection, values: dict[str, Any]) -> tuple[int, int]:
    """Settle what cannot or may not be tried again; returns how many gave up, and how many wait in review."""
    row = conn.execute(sql.text("outcome/settle_dead_letters"), values).fetchone()
    assert row is not None
    return row[0], row[1]


def _keep_for_reuse(conn: Connection, values: dict[str, Any]) -> int:
    """Store the accepted answers whose key has none, or one that passed other rules; returns how many. A cancelled
    `reprocess` replaces nothing."""
    conn.execute(sql.text("result/supersede"), values | {"reprocess": False})
    return conn.execute(sql.text("result/store_revisions"), values).rowcount


def _row(arrival: Arrival) -> tuple[Any, ...]:
    failure = arrival.failure
    return (
        arrival.ordinal,
        str(failure.kind) if failure else None,
        _clean(failure.code) if failure else None,
        _clean(failure.message) if failure else None,
        _may_be_retried(arrival),
        arrival.sent_upstream,
        orjson.dumps(arrival.answer).decode() if arrival.answer is not None else None,
        "{" + ",".join(arrival.notes) + "}" if arrival.notes else None,
        orjson.dumps(arrival.citations).decode() if arrival.citations else None,
        arrival.uncached_tokens,
        arrival.output_tokens,
        arrival.cache_read_tokens,
        arrival.cache_write_tokens,
        arrival.reasoning_tokens,
        orjson.dumps(arrival.odd_usage).decode() if arrival.odd_usage is not None else None,
        _clean(arrival.model),
        _clean(arrival.finish_reason),
        failure is not None and failure.asks_a_person,
    )


def _may_be_retried(arrival: Arrival) -> bool:
    if arrival.failure is None:
        return False
    return arrival.failure.retryable if arrival.retryable is None else arrival.retryable


def _clean(text: str | None) -> str | None:
    """What a provider wrote, without what Postgres text cannot hold: NUL becomes U+FFFD, a lone surrogate ?."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def refuse_unsent(conn: Connection, batch_id: int, ordinals: Sequence[int], failure: Failure) -> int:
    """Dead-letter items that cannot be sent at all, without an attempt; returns how many."""
    values = {
        "batch_id": batch_id,
        "ordinals": list(ordinals),
        "class": str(failure.kind),
        "code": failure.code,
        "message": failure.message,
    }
    with refusals():
        return conn.execute(sql.text("outcome/settle_unsendable"), values).rowcount

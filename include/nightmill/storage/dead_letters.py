"""Dead letters with their context. The message may quote a provider, and with it a document: callers decide who sees
it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from nightmill.domain.failures import EndedAs
from nightmill.jobs.rules.dead_letters import DeadLetterFilter
from nightmill.storage import sql
from nightmill.storage.payloads import evidence_path
from nightmill.storage.session import Connection


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One item that gave up, or waits in review. Contract, versions and shard are those under which it did, in batch
    `gave_up_in`, where it stood at `gave_up_ordinal`.

    Source id, tenant and domain are None once the batch's manifest was removed; `payload_line` counts from 1.
    """

    dead_letter_id: int
    job: str
    batch_id: int
    ordinal: int
    source_id: str | None
    source_version: str | None
    tenant: str | None
    domain: str | None
    kind: str
    code: str
    ended_as: EndedAs
    message: str
    attempts: int
    created_at: datetime
    gave_up_in: int
    key: str
    contract_id: int
    prompt_version: str
    output_schema_version: str
    model_policy_version: str
    transform_version: str
    shard_id: int | None
    provider_batch_id: int | None
    provider_id: str | None
    payload_object: str | None
    payload_line: int | None
    answer_token: str | None
    gave_up_ordinal: int

    @property
    def answer_object(self) -> str | None:
        """The raw result file with the answer that was rejected; None where there was none, or it was deleted."""
        if self.answer_token is None:
            return None
        return evidence_path(self.job, self.gave_up_in, self.answer_token, "output")


@dataclass(frozen=True, slots=True)
class Group:
    """How many dead letters of a batch have the same reason, and since when."""

    job: str
    batch_id: int
    kind: str
    code: str
    ended_as: EndedAs
    letters: int
    oldest: datetime


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose dead letters: of a job, of a batch, of all (None)."""

    job: str | None = None
    batch_id: int | None = None


def search(conn: Connection, scope: Scope, choice: DeadLetterFilter, limit: int) -> Iterator[DeadLetter]:
    """Those that match, the newest batch first, streamed."""
    query = sql.text("dead_letter/search").format(matches=sql.text("dead_letter/matches"))
    with conn.cursor(name="dead_letters", row_factory=class_row(DeadLetter)) as cursor:
        yield from cursor.execute(query, _values(scope, choice) | {"limit": limit})


def count(conn: Connection, scope: Scope, choice: DeadLetterFilter) -> list[Group]:
    """Those that match by batch and reason, the newest batch first."""
    query = sql.text("dead_letter/count").format(matches=sql.text("dead_letter/matches"))
    with conn.cursor(row_factory=class_row(Group)) as cursor:
        return cursor.execute(query, _values(scope, choice)).fetchall()


def standing(conn: Connection, batch_id: int) -> tuple[int, datetime | None]:
    """How many dead letters a batch has, and when the oldest of them gave up; what waits in review is none."""
    row = conn.execute(sql.text("dead_letter/standing"), {"batch_id": batch_id}).fetchone()
    assert row is not None
    return row[0], row[1]


def _values(scope: Scope, choice: DeadLetterFilter) -> dict[str, object]:
    return {"job": scope.job, "batch_id": scope.batch_id, **choice.conditions}

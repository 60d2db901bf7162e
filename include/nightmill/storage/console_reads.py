"""What a batch and its shards did at the provider, for people who look: read only, and no text of any document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from psycopg.rows import class_row

from nightmill.domain.states import LIVE_PROVIDER_BATCH_STATES, ProviderBatchState
from nightmill.storage import sql
from nightmill.storage.session import Connection
from nightmill.storage.shards import Shard

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Request:
    """Who asked for a batch, and the note they left."""

    note: str | None
    requested_by: str | None


@dataclass(frozen=True, slots=True)
class ShardStanding(Shard):
    """A shard as it stands. `wake_at` is when it looks again at the latest; `failed_at` is when its task failed, None
    once another wake-up has begun."""

    state_reason: str
    settled_at: datetime | None
    failed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """A provider batch with everything that is known of it. The counts and `usage` are the provider's own."""

    provider_batch_id: int
    shard_id: int
    state: ProviderBatchState
    state_reason: str
    token: str
    account: str
    adapter: str
    model: str
    requests: int
    prompt_tokens: int
    adopted: bool | None
    raw_status: str | None
    requests_done: int | None
    requests_answered: int | None
    requests_total: int | None
    usage: dict[str, Any] | None
    input_ref: str | None
    provider_id: str | None
    result_refs: dict[str, str]
    intent_at: datetime
    creating_at: datetime | None
    submitted_at: datetime | None
    ended_at: datetime | None
    collected_at: datetime | None
    window_ends_at: datetime | None
    results_until: datetime | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", ProviderBatchState(self.state))

    @property
    def live(self) -> bool:
        """Whether its items may still be answered by it."""
        return self.state in LIVE_PROVIDER_BATCH_STATES

    @property
    def done(self) -> int:
        """Requests that the provider has finished, well or not."""
        return self.requests_done or 0


@dataclass(frozen=True, slots=True)
class Attempts:
    """Attempts of one failure class and code (class None = accepted). `unreported` came without usage although they
    were processed, `odd` with usage that cannot be."""

    failure_class: str | None
    code: str | None
    requests: int
    prompt: int
    completion: int
    cached: int
    cache_written: int
    reasoning: int
    unreported: int
    odd: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The newest word of a gate; one of an older generation opens nothing."""

    gate: str
    generation: int
    word: str
    decided_by: str | None
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class Compared:
    """The newest comparison of a batch; everything but its number is None where none was made."""

    batch_id: int
    generation: int | None
    word: str | None
    details: dict[str, Any] | None
    decided_at: datetime | None


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that two batches have differently: its fields that differ, by name. Values are cut."""

    source_id: str
    tenant: str | None
    old: dict[str, str]
    new: dict[str, str]


@dataclass(frozen=True, slots=True)
class Step:
    """One state edge that was taken."""

    entity: str
    entity_id: int
    from_state: str | None
    to_state: str
    reason: str
    made_at: datetime


def request(conn: Connection, batch_id: int) -> Request:
    """Who asked for a batch that exists."""
    (found,) = _read(conn, Request, "console/request", batch_id=batch_id)
    return found


def compared(conn: Connection, dag_id: str, batch_id: int) -> Compared | None:
    """What compare said of a batch of this DAG; None where the DAG has no such batch."""
    return next(iter(_read(conn, Compared, "console/comparison", batch_id=batch_id, dag_id=dag_id)), None)


def may_read_answers(conn: Connection) -> bool:
    """Whether this login has the role nightmill_reviewer."""
    row = conn.execute(sql.text("console/may_read_answers")).fetchone()
    assert row is not None
    return bool(row[0])


def changed_rows(
    conn: Connection, new: int, old: int, publication: int, fields: Sequence[str], tenants: Sequence[str], most: int
) -> list[ChangedRow]:
    """A sample of what differs from what readers saw, the batch `old` of a publication or more of it; always the same
    one, rows of `tenants` first. Needs the role nightmill_reviewer."""
    values = {"new": new, "old": old, "publication": publication, "most": most}
    return _read(conn, ChangedRow, "console/changed_rows", fields=list(fields), tenants=list(tenants), **values)


def shards(conn: Connection, batch_id: int) -> list[ShardStanding]:
    """All shards of a batch, in order."""
    return _read(conn, ShardStanding, "console/shards", batch_id=batch_id)


def shard(conn: Connection, dag_id: str, shard_id: int) -> ShardStanding | None:
    """One shard, if it belongs to a batch of this DAG."""
    return next(iter(_read(conn, ShardStanding, "console/shard", dag_id=dag_id, shard_id=shard_id)), None)


def of_shards(conn: Connection, shard_ids: Sequence[int]) -> list[Evidence]:
    """The provider batches of shards, oldest first."""
    return _read(conn, Evidence, "console/provider_batches", shard_ids=list(shard_ids))


def attempts(conn: Connection, batch_id: int, first: int, last: int) -> list[Attempts]:
    """Attempts for a stretch of items, accepted ones first."""
    return _read(conn, Attempts, "console/attempts", batch_id=batch_id, first=first, last=last)


def buckets(conn: Connection, batch_id: int, first: int, last: int) -> list[tuple[str, int]]:
    """Settled items of a stretch per bucket."""
    values = {"batch_id": batch_id, "first": first, "last": last}
    return conn.execute(sql.text("console/buckets"), values).fetchall()


def verdicts(conn: Connection, batch_id: int) -> list[Verdict]:
    """The newest verdict of each gate."""
    return _read(conn, Verdict, "console/gates", batch_id=batch_id)


def history(
    conn: Connection, batch_id: int, entity: str, entity_id: int, provider_batch_ids: Sequence[int] = ()
) -> list[Step]:
    """The newest hundred edges of a batch or shard, and of these provider batches; newest first."""
    return _read(
        conn, Step, "console/history",
        batch_id=batch_id, entity=entity, entity_id=entity_id, provider_batch_ids=list(provider_batch_ids),
    )  # fmt: skip


def _read(conn: Connection, kind: type[Row], query: str, **values: Any) -> list[Row]:
    with conn.cursor(row_factory=class_row(kind)) as cursor:
        return cursor.execute(sql.text(query), values).fetchall()

"""What retention asks and deletes. Deleting takes the owner's login: tasks of jobs can delete nothing of this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from nightmill.storage import partitions, sql
from nightmill.storage.session import Connection

_OF_EVERY_BATCH = ("outcome", "attempt", "item")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An ended batch and what speaks for keeping it. `published_rank` is 1 for the view's newest, None = never;
    `newest_of_job` leaves out those that were cancelled.
    """

    batch_id: int
    job: str
    view_name: str
    contract_id: int
    ended_at: datetime
    published_rank: int | None
    shown: bool
    in_flight: bool
    needed_by_child: bool
    newest_of_job: bool


@dataclass(frozen=True, slots=True)
class Preview:
    """A batch that waits in STAGED, since when."""

    batch_id: int
    job: str
    contract_id: int
    staged_at: datetime


@dataclass(frozen=True, slots=True)
class RawFiles:
    """The raw result files of a provider batch that the object store still holds: `output`, `error`."""

    provider_batch_id: int
    token: str
    kinds: list[str]


def candidates(conn: Connection) -> list[Candidate]:
    """Every ended batch that was not retired yet, oldest first."""
    with conn.cursor(row_factory=class_row(Candidate)) as cursor:
        return cursor.execute(sql.text("maintenance/retention_candidates")).fetchall()


def previews(conn: Connection) -> list[Preview]:
    """Every batch that is STAGED."""
    with conn.cursor(row_factory=class_row(Preview)) as cursor:
        return cursor.execute(sql.text("batch/waiting_previews")).fetchall()


def candidate(conn: Connection, batch_id: int) -> Candidate | None:
    """One of them as it stands now; None when another sweep has retired it."""
    return next((one for one in candidates(conn) if one.batch_id == batch_id), None)


def raw_files(conn: Connection, batch_id: int, before: datetime) -> list[RawFiles]:
    """The raw files of a batch that were collected before a moment."""
    with conn.cursor(row_factory=class_row(RawFiles)) as cursor:
        return cursor.execute(
            sql.text("provider_batch/with_raw_files"), {"batch_id": batch_id, "before": before}
        ).fetchall()


def note_files_deleted(conn: Connection, provider_batch_ids: Sequence[int]) -> None:
    """Note that raw files are gone. `conn` must be the owner's."""
    conn.execute(sql.text("provider_batch/note_raw_files_deleted"), {"provider_batch_ids": list(provider_batch_ids)})


def drop_partitions(conn: Connection, one: Candidate, timeout_s: float) -> bool:
    """Drop a batch's partitions; False when old readers held one for longer than the timeout, and the next call goes
    on. `conn` must be the owner's and in autocommit."""
    parents = (f"rows_{one.view_name}", *_OF_EVERY_BATCH)
    return all(partitions.retire(conn, parent, one.batch_id, timeout_s) for parent in parents)


def retire(conn: Connection, batch_id: int) -> None:
    """Delete dead letters and payload references of a batch whose partitions are gone, and note that it is retired."""
    conn.execute(sql.text("batch/retire"), {"batch_id": batch_id})


def newest_contracts(conn: Connection) -> dict[str, int]:
    """The contract under which each job last ran."""
    return dict(conn.execute(sql.text("contract/newest")).fetchall())


def trim_log(
    conn: Connection, days: Mapping[str, float], default_days: float, today: datetime, *, dry_run: bool
) -> int:
    """Delete what maintenance did more than so many days before a moment, by job; returns how many lines. `conn` must
    be the owner's."""
    values = {"jobs": list(days), "days": list(days.values()), "default_days": default_days, "today": today}
    row = conn.execute(sql.text("maintenance/trim_log"), values | {"dry_run": dry_run}).fetchone()
    assert row is not None
    return int(row[0])

"""What keeps a batch from sending: its circuit breakers, and a provider batch in a state that nobody knows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from psycopg.rows import class_row

from nightmill.jobs.rules.breaker import Count, Verdict
from nightmill.storage import sql
from nightmill.storage.session import Connection


class Kind(StrEnum):
    """What opened a breaker."""

    FAILURES = "failures"  # its requests fail alike
    CANCELLED = "cancelled"  # somebody cancelled one of its batches at the provider


@dataclass(frozen=True, slots=True)
class Standing:
    """`to_send` is planned. `state` and `since` are of the breaker for failures; `cause` and `remedy` of the one that
    is open, if any. `in_flight`: something of the batch is under way. `unknown_status` is the word of a live provider
    batch that nobody knows."""

    to_send: int | None
    state: str | None
    since: datetime | None
    cause: str | None
    remedy: str | None
    in_flight: bool
    unknown_status: str | None

    @property
    def verdict(self) -> Verdict:
        """On its failures so far."""
        return Verdict(self.state or Verdict.WATCHING)


def standing(conn: Connection, batch_id: int) -> Standing:
    """Where a batch stands now."""
    with conn.cursor(row_factory=class_row(Standing)) as cursor:
        row = cursor.execute(sql.text("breaker/standing"), {"batch_id": batch_id}).fetchone()
    assert row is not None
    return row


def count(conn: Connection, batch_id: int, since: datetime | None, *, but: int = 0) -> Count:
    """What settled since a moment, leaving out one provider batch."""
    values = {"batch_id": batch_id, "since": since, "but": but}
    rows = conn.execute(sql.text("breaker/counts"), values).fetchall()
    accepted = sum(requests for kind, _, requests in rows if kind is None)
    return Count(accepted, {(kind, code): requests for kind, code, requests in rows if kind is not None})


def put(
    conn: Connection, batch_id: int, kind: Kind, verdict: Verdict, cause: str | None = None, remedy: str | None = None
) -> None:
    """Set a breaker, inside the caller's fenced transaction. `cause` and `remedy` go with OPEN."""
    values = {"batch_id": batch_id, "kind": str(kind), "state": str(verdict), "cause": cause, "remedy": remedy}
    conn.execute(sql.text("breaker/set"), values)


def reset(conn: Connection, batch_id: int, cause: str) -> None:
    """A person cleared what this cause had stopped."""
    conn.execute(sql.text("breaker/reset"), {"batch_id": batch_id, "cause": cause})


def proven(conn: Connection, contract_id: int) -> bool:
    """Whether the contract, or one of the same meaning, ever had an accepted answer."""
    row = conn.execute(sql.text("contract/proven"), {"contract_id": contract_id}).fetchone()
    return bool(row and row[0])

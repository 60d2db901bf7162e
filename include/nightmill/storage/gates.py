"""Verdicts of the gates on a batch. What opens a gate is the newest verdict of this generation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from nightmill.domain.errors import Terminal
from nightmill.domain.gates import GATES, GateName, Word
from nightmill.storage import fence, sql
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

REVOKED = "revoked"  # of a rejection's details: how many answers it took out of reuse


@dataclass(frozen=True, slots=True)
class Verdict:
    """A gate's newest word on a batch. `decided_by` is None where a rule decided."""

    verdict_id: int
    gate: GateName
    word: Word
    details: dict[str, Any]
    config_hash: str
    decided_by: str | None
    decided_at: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "gate", GateName(self.gate))
        object.__setattr__(self, "word", Word(self.word))


def record(
    conn: Connection,
    holder: fence.Holder,
    gate: GateName,
    word: Word,
    details: dict[str, Any],
    config_hash: str,
    decided_by: str | None = None,
) -> None:
    """Record one evaluation under the shared fence. `details` hold counts and rule names, never document text."""
    fence.enter(conn, holder)
    conn.execute(
        sql.text("gate/record"),
        {
            "batch_id": holder.batch_id,
            "generation": holder.generation,
            "gate": str(gate),
            "verdict": str(word),
            "details": Jsonb(details),
            "config_hash": config_hash,
            "decided_by": decided_by,
        },
    )


def newest(conn: Connection, holder: fence.Holder) -> list[Verdict]:
    """The newest verdict of each gate in this generation, in the order of the gates."""
    with conn.cursor(row_factory=class_row(Verdict)) as cursor:
        found = cursor.execute(
            sql.text("gate/newest"), {"batch_id": holder.batch_id, "generation": holder.generation}
        ).fetchall()
    return sorted(found, key=lambda one: GATES.index(one.gate))


def refuse_revoked(conn: Connection, parent: Batch) -> None:
    """Raise Terminal for a replay of a batch whose answers a rejection revoked: its child would carry them."""
    revoked = [one for one in newest(conn, parent.holder) if one.details.get(REVOKED)]
    if revoked:
        raise Terminal(
            f"The answers of batch {parent.batch_id} were revoked when {revoked[0].decided_by} rejected it.",
            "Trigger a new run, which asks for them again.",
        )

"""Verdicts of the gates on a batch. Publishing needs this generation's newest verdict of each gate, and that it is no
refusal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from nightmill.storage import fence, sql
from nightmill.storage.ledger import Connection

NOT_CONFIGURED = "not configured"
GATES = ("completion", "check_staging", "compare", "approve")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A gate's newest word; `passed` is None where the job does not configure it."""

    gate: str
    passed: bool | None

    @property
    def word(self) -> str:
        """As people read it."""
        return verdict_word(self.passed)


def verdict_word(passed: bool | None) -> str:
    """What a verdict is called everywhere."""
    return NOT_CONFIGURED if passed is None else "passed" if passed else "not passed"


def record(
    conn: Connection, holder: fence.Holder, gate: str, passed: bool | None, details: dict[str, Any], config_hash: str
) -> None:
    """Record one evaluation under the shared fence; None for a gate that the job does not configure. `details` hold
    counts and rule names, never document text."""
    fence.enter(conn, holder)
    conn.execute(
        sql.text("gate_record"),
        {
            "batch_id": holder.batch_id,
            "generation": holder.generation,
            "gate": gate,
            "passed": passed,
            "details": Jsonb(details),
            "config_hash": config_hash,
        },
    )


def newest(conn: Connection, holder: fence.Holder) -> list[Verdict]:
    """The newest verdict of each gate in this generation, in the order of the gates."""
    with conn.cursor(row_factory=class_row(Verdict)) as cursor:
        found = cursor.execute(
            sql.text("gates_passed"), {"batch_id": holder.batch_id, "generation": holder.generation}
        ).fetchall()
    return sorted(found, key=lambda one: GATES.index(one.gate))


def not_passed(conn: Connection, holder: fence.Holder) -> list[str]:
    """Gates whose newest verdict in this generation is missing or a refusal."""
    open_ = {one.gate for one in newest(conn, holder) if one.passed is not False}
    return [gate for gate in GATES if gate not in open_]

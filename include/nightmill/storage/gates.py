"""Verdicts of the gates on a batch. Publishing needs this generation's newest verdict of each gate to be a pass."""

from __future__ import annotations

from typing import Any

from psycopg.types.json import Jsonb

from nightmill.storage import fence, sql
from nightmill.storage.ledger import Connection

GATES = ("completion", "check_staging", "compare", "approve")


def record(
    conn: Connection, holder: fence.Holder, gate: str, passed: bool, details: dict[str, Any], config_hash: str
) -> None:
    """Record one evaluation under the shared fence. `details` hold counts and rule names, never values of rows."""
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


def not_passed(conn: Connection, holder: fence.Holder) -> list[str]:
    """Gates whose newest verdict in this generation is missing or a no."""
    rows = conn.execute(
        sql.text("gates_passed"), {"batch_id": holder.batch_id, "generation": holder.generation}
    ).fetchall()
    passed = {gate for gate, verdict in rows if verdict}
    return [gate for gate in GATES if gate not in passed]

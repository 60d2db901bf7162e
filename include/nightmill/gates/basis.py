"""What an approval was given for: this generation, the verdicts before it, and what the batch would replace."""

from __future__ import annotations

from nightmill.domain.gates import GateName
from nightmill.domain.keys import content_hash
from nightmill.gates import baseline
from nightmill.storage import gates
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

KEY = "basis"  # of an approval's details


def of(conn: Connection, batch: Batch) -> str:
    """A hash. A verdict that was computed anew is another one, also where it says the same."""
    before = [one.verdict_id for one in gates.newest(conn, batch.holder) if one.gate is not GateName.APPROVE]
    shown = baseline.of(conn, batch)
    return content_hash({"generation": batch.generation, "verdicts": before, "baseline": shown}).hex()[:16]

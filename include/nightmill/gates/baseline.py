"""What a batch would replace for readers. A verdict that was worked out against something else opens nothing."""

from __future__ import annotations

from nightmill.storage import publications
from nightmill.storage.batches import Batch
from nightmill.storage.ledger import Connection

KEY = "baseline"  # of a verdict's details


def of(conn: Connection, batch: Batch) -> int | None:
    """The batch that readers see where this one would be shown; None where they see none."""
    shown = publications.current(conn, batch.view_name)
    return shown.batch_id if shown else None

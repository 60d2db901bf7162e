"""What a batch would replace for readers. A verdict that was worked out against something else opens nothing."""

from __future__ import annotations

from nightmill.domain.parts import Part
from nightmill.domain.publish_settings import PublishMode
from nightmill.storage import publications
from nightmill.storage.batches import Batch
from nightmill.storage.ledger import Connection

KEY = "baseline"  # of a verdict's details


def of(conn: Connection, batch: Batch) -> int | None:
    """The batch that readers see where this one would be shown; None where they see none."""
    shown = publications.current(conn, batch.view_name)
    if shown is None or shown.mode is not PublishMode.BY_INTERVAL:
        return shown.batch_id if shown else None
    return max(
        (one.batch_id for one in publications.parts(conn, shown.publish_seq) if _covers(batch, one)), default=None
    )


def _covers(batch: Batch, part: Part) -> bool:
    """Whether the part's interval is the batch's, or lies within it."""
    if None in (batch.data_interval_start, batch.data_interval_end, part.interval_start, part.interval_end):
        return False
    assert batch.data_interval_start and batch.data_interval_end and part.interval_start and part.interval_end
    return batch.data_interval_start <= part.interval_start and part.interval_end <= batch.data_interval_end

"""What a batch would replace for readers. A verdict that was worked out against something else opens nothing."""

from __future__ import annotations

from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.storage import publications
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

KEY = "baseline"  # of a verdict's details


def of(conn: Connection, batch: Batch) -> int | None:
    """The batch that readers see where this one would be shown; None where they see none."""
    shown = publications.current(conn, batch.view_name)
    if shown is None or shown.mode is not PublishMode.BY_INTERVAL:
        return shown.batch_id if shown else None
    interval = batch.data_interval_start, batch.data_interval_end
    listed = publications.parts(conn, shown.publish_seq)
    return max((one.batch_id for one in listed if one.lies_within(*interval)), default=None)

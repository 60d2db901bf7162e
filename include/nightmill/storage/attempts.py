"""What was asked before: attempts of a provider batch and of items."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from psycopg.types.multirange import Int8Multirange

from nightmill.storage import sql
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.session import Connection


def attempted(conn: Connection, batch: ProviderBatch) -> set[int]:
    """Ordinals whose line of this provider batch is in the ledger already."""
    rows = conn.execute(sql.text("attempt/ordinals_of_provider_batch"), _scope(batch)).fetchall()
    return {row[0] for row in rows}


class FailedItem(msgspec.Struct, frozen=True, gc=False):
    """An unsettled item whose attempts failed so far. `kind`, `code`, `provider_batch_id` and `last_at` are those of
    its last attempt; `failures` leaves out what failed for want of capacity; `truncations` are answers cut off."""

    ordinal: int
    failures: int
    kind: str
    code: str
    provider_batch_id: int
    truncations: int
    last_at: datetime


def failed_items(conn: Connection, batch_id: int, ordinals: Int8Multirange) -> dict[int, FailedItem]:
    """Those of these items that were attempted before, by ordinal."""
    if not ordinals:
        return {}
    values = {
        "batch_id": batch_id,
        "ordinals": ordinals,
        "first": ordinals[0].lower,
        "last": (ordinals[-1].upper or 0) - 1,
    }
    return {row[0]: FailedItem(*row) for row in conn.execute(sql.text("attempt/failed_items"), values)}


def untried(conn: Connection, batch: ProviderBatch) -> bool:
    """Whether its items were never asked for before."""
    row = conn.execute(sql.text("attempt/untried"), _scope(batch)).fetchone()
    return bool(row and row[0])


def _scope(batch: ProviderBatch) -> dict[str, Any]:
    return {
        "batch_id": batch.batch_id,
        "provider_batch_id": batch.provider_batch_id,
        "ordinals": batch.ordinals,
    }

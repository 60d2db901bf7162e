"""The read model of the page Compare: what the gate recorded, and a sample of the rows that changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nightmill.storage import batches, console_reads
from nightmill.storage.batches import Batch
from nightmill.storage.console_reads import ChangedRow, Compared
from nightmill.storage.session import Connection

MOST_ROWS = 50


@dataclass(frozen=True, slots=True)
class ComparePage:
    """`details` are the gate's own; empty where nothing was compared. `sample` is None where the console's login may
    not read answers."""

    at: datetime
    batch: Batch
    compared: Compared
    details: dict[str, Any]
    sample: list[ChangedRow] | None

    @property
    def whole(self) -> dict[str, Any] | None:
        """All items together."""
        return next((one for one in self.details.get("slices", ()) if one["by"] == "all"), None)

    @property
    def slices(self) -> list[dict[str, Any]]:
        """The others, those that break a limit first."""
        broken = {(one["by"], one["name"]) for one in self.details.get("findings", ())}
        parts = [one for one in self.details.get("slices", ()) if one["by"] != "all"]
        return sorted(
            ({**one, "broken": (one["by"], one["name"]) in broken} for one in parts), key=lambda one: not one["broken"]
        )


def compare_page(conn: Connection, dag_id: str, batch_id: int, now: datetime) -> ComparePage | None:
    """One batch of the DAG, or None when there is none with this id."""
    compared = console_reads.compared(conn, dag_id, batch_id)
    if compared is None:
        return None
    details = compared.details or {}
    return ComparePage(now, batches.get(conn, batch_id), compared, details, _sample(conn, batch_id, details))


def _sample(conn: Connection, batch_id: int, details: dict[str, Any]) -> list[ChangedRow] | None:
    old = details.get("old")
    if not old:
        return []
    if not console_reads.may_read_answers(conn):
        return None
    tenants = [one["name"] for one in details["findings"] if one["by"] == "tenant"]
    fields, publication = list(details["fields"]), details["publication"]
    return console_reads.changed_rows(conn, batch_id, old["batch_id"], publication, fields, tenants, MOST_ROWS)

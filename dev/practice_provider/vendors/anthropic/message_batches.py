"""Message batches in the ledger: their workspace, and whether they were deleted, beside the row of `batch`."""

from __future__ import annotations

from collections.abc import Sequence

from dev.practice_provider.batch_states import BatchRow
from dev.practice_provider.ledger import Ledger
from dev.practice_provider.vendors.anthropic.bodies import MESSAGES

_TABLE = (
    "create table if not exists message_batch"
    " (batch_id text primary key, workspace text not null, deleted integer not null default 0) without rowid"
)
_SEEN = "select b.* from batch b join message_batch m on m.batch_id = b.id where m.workspace = ? and m.deleted = 0"
_QUEUED = (
    f"select coalesce(sum(total), 0) from batch where endpoint = '{MESSAGES}'"
    " and status in ('validating', 'in_progress', 'finalizing', 'cancelling')"
)


class MessageBatches:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        ledger.execute(_TABLE)

    def queued(self) -> int:
        """Requests in all unfinished batches of the organisation, whatever their workspace."""
        row = self._ledger.row(_QUEUED)
        assert row is not None
        return int(row[0])

    def add(
        self, batch_id: str, requests_id: str, workspace: str, model: str, total: int, now: float, expires_at: float
    ) -> BatchRow:
        """A batch whose requests and input index are written."""
        with self._ledger.transaction() as connection:
            connection.execute(
                "insert into batch (id, status, endpoint, input_file_id, created_at, expires_at, in_progress_at, model,"
                " validated, total) values (?, 'in_progress', ?, ?, ?, ?, ?, ?, 1, ?)",
                (batch_id, MESSAGES, requests_id, now, expires_at, now, model, total),
            )
            connection.execute("insert into message_batch (batch_id, workspace) values (?, ?)", (batch_id, workspace))
        found = self.find(workspace, batch_id)
        assert found is not None
        return found

    def find(self, workspace: str, batch_id: str) -> BatchRow | None:
        row = self._ledger.row(f"{_SEEN} and b.id = ?", (workspace, batch_id))
        return None if row is None else BatchRow(**dict(row))

    def older(self, workspace: str, than: int, limit: int) -> tuple[Sequence[BatchRow], bool]:
        """Newest first, from before a sequence number, and whether more follow."""
        rows = self._ledger.rows(f"{_SEEN} and b.seq < ? order by b.seq desc limit ?", (workspace, than, limit + 1))
        return [BatchRow(**dict(row)) for row in rows[:limit]], len(rows) > limit

    def newer(self, workspace: str, than: int, limit: int) -> tuple[Sequence[BatchRow], bool]:
        """Those nearest to a sequence number, newest first, and whether there are more beyond them."""
        rows = self._ledger.rows(f"{_SEEN} and b.seq > ? order by b.seq limit ?", (workspace, than, limit + 1))
        return [BatchRow(**dict(row)) for row in rows[:limit]][::-1], len(rows) > limit

    def delete(self, batch_id: str) -> None:
        self._ledger.execute("update message_batch set deleted = 1 where batch_id = ?", (batch_id,))

"""Batches in the ledger. Every change of status names the status it comes from."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from dev.practice_provider.batch_states import EDGES, BatchRow, Status
from dev.practice_provider.ledger import Ledger

_OPEN = "status in ('validating', 'in_progress', 'finalizing', 'cancelling')"


class BatchStore:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def add(
        self,
        endpoint: str,
        input_file_id: str,
        metadata: Mapping[str, str] | None,
        created_at: float,
        expires_at: float,
        output_expires_s: int | None,
    ) -> BatchRow:
        batch_id = f"batch_{secrets.token_hex(12)}"
        self._ledger.execute(
            "insert into batch (id, status, endpoint, input_file_id, metadata, created_at, expires_at,"
            " output_expires_s) values (?, 'validating', ?, ?, ?, ?, ?, ?)",
            (
                batch_id,
                endpoint,
                input_file_id,
                None if metadata is None else json.dumps(dict(metadata)),
                created_at,
                expires_at,
                output_expires_s,
            ),
        )
        return self.get(batch_id)

    def get(self, batch_id: str) -> BatchRow:
        found = self.find(batch_id)
        assert found is not None
        return found

    def find(self, batch_id: str) -> BatchRow | None:
        row = self._ledger.row("select * from batch where id = ?", (batch_id,))
        return None if row is None else BatchRow(**dict(row))

    def unfinished(self) -> Sequence[BatchRow]:
        return [BatchRow(**dict(row)) for row in self._ledger.rows(f"select * from batch where {_OPEN} order by seq")]

    def page(self, endpoints: Sequence[str], limit: int, after: BatchRow | None) -> tuple[Sequence[BatchRow], bool]:
        """The batches of some endpoints, newest first, and whether more follow."""
        rows = self._ledger.rows(
            "select * from batch where seq < ? and endpoint in (select value from json_each(?))"
            " order by seq desc limit ?",
            (after.seq if after else 2**62, json.dumps(list(endpoints)), limit + 1),
        )
        return [BatchRow(**dict(row)) for row in rows[:limit]], len(rows) > limit

    def move(self, batch: BatchRow, to: Status, now: float) -> bool:
        """Change the status and stamp its time; False when the batch is no longer where it was."""
        assert to in EDGES[Status(batch.status)], (batch.status, to)
        changed = self._ledger.execute(
            f"update batch set status = ?, {to.value}_at = ? where id = ? and status = ?",
            (to.value, now, batch.id, batch.status),
        )
        return changed == 1

    def fail(self, batch: BatchRow, problems: Sequence[Mapping[str, Any]], total: int, now: float) -> None:
        self._ledger.execute(
            "update batch set status = 'failed', failed_at = ?, problems = ?, total = ?"
            " where id = ? and status = 'validating'",
            (now, json.dumps(list(problems)), total, batch.id),
        )

    def accept(self, batch: BatchRow, model: str, total: int, prompt_tokens: int, limit: int | None) -> bool:
        """Record a valid input file, unless it and the model's unfinished batches together exceed `limit` prompt
        tokens: then nothing changes and the answer is False."""
        with self._ledger.transaction() as connection:
            row = connection.execute(
                f"select coalesce(sum(enqueued_tokens), 0) from batch where model = ? and id <> ? and {_OPEN}",
                (model, batch.id),
            ).fetchone()
            if limit is not None and row[0] + prompt_tokens > limit:
                return False
            # A cancel that came in during validation keeps its status: only the findings are recorded.
            connection.execute(
                "update batch set validated = 1, model = ?, total = ?, enqueued_tokens = ? where id = ?",
                (model, total, prompt_tokens, batch.id),
            )
            return True

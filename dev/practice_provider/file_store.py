"""Uploaded input files and the result files of batches."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from dev.practice_provider.ledger import Ledger
from dev.practice_provider.refusal import Refusal

_VISIBLE = "deleted = 0 and (expires_at is null or expires_at > ?)"


@dataclass(frozen=True, slots=True)
class StoredFile:
    seq: int
    id: str
    purpose: str
    filename: str
    bytes: int
    created_at: float
    expires_at: float | None
    deleted: int

    def as_json(self) -> dict[str, Any]:
        return {
            "object": "file",
            "id": self.id,
            "purpose": self.purpose,
            "filename": self.filename,
            "bytes": self.bytes,
            "created_at": int(self.created_at),
            "expires_at": None if self.expires_at is None else int(self.expires_at),
            "status": "processed",
            "status_details": None,
        }


def file_not_found(file_id: str) -> Refusal:
    return Refusal(404, f"No such File object: {file_id}", param="id")


class FileStore:
    """Files whose bytes lie in the data folder. A deleted input file keeps its bytes until its batches have ended."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def path_of(self, file_id: str) -> Path:
        return self._ledger.path_of(file_id)

    def add_upload(self, source: IO[bytes], filename: str, now: float, expires_s: int | None) -> StoredFile:
        """Copy an upload to disk, then make it known: a kill in between leaves bytes that nobody sees."""
        file_id = f"file-{secrets.token_hex(12)}"
        path = self.path_of(file_id)
        with path.open("wb") as target:
            shutil.copyfileobj(source, target, 1024 * 1024)
        expires_at = None if expires_s is None else now + expires_s
        self._ledger.execute(
            "insert into file (id, purpose, filename, bytes, created_at, expires_at) values (?, 'batch', ?, ?, ?, ?)",
            (file_id, filename, path.stat().st_size, now, expires_at),
        )
        row = self._ledger.row("select * from file where id = ?", (file_id,))
        assert row is not None
        return StoredFile(**dict(row))

    def find(self, file_id: str, now: float) -> StoredFile | None:
        row = self._ledger.row(f"select * from file where id = ? and {_VISIBLE}", (file_id, now))
        return None if row is None else StoredFile(**dict(row))

    def page(
        self, now: float, purpose: str | None, limit: int, after: StoredFile | None, order: Literal["asc", "desc"]
    ) -> tuple[Sequence[StoredFile], bool]:
        """A page of files and whether more follow."""
        beyond = "<" if order == "desc" else ">"
        start = after.seq if after else (2**62 if order == "desc" else 0)
        rows = self._ledger.rows(
            f"select * from file where {_VISIBLE} and seq {beyond} ? and coalesce(?, purpose) = purpose"
            f" order by seq {order} limit ?",
            (now, start, purpose, limit + 1),
        )
        return [StoredFile(**dict(row)) for row in rows[:limit]], len(rows) > limit

    def delete(self, file_id: str) -> None:
        self._ledger.execute("update file set deleted = 1 where id = ?", (file_id,))
        self.sweep(file_id)

    def sweep(self, file_id: str) -> None:
        """Free the bytes of a deleted file that no unfinished batch reads."""
        needed = self._ledger.row(
            "select 1 from batch where input_file_id = ?"
            " and status in ('validating', 'in_progress', 'finalizing', 'cancelling')",
            (file_id,),
        )
        gone = self._ledger.row("select 1 from file where id = ? and deleted = 1", (file_id,))
        if gone and not needed and self.path_of(file_id).exists():
            self.path_of(file_id).unlink()

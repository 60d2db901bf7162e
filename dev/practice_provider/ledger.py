"""The simulator's durable memory: one SQLite file and a folder of files, owned by one process at a time."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from nightmill.domain.errors import ConfigError

Parameters = Sequence[Any]


class Ledger:
    """One connection behind one lock. A killed process loses nothing that was committed (write-ahead log).

    Raises ConfigError when another simulator owns the folder: two of them would execute every batch twice.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self._files_dir = data_dir / "files"
        self._files_dir.mkdir(parents=True, exist_ok=True)
        self._owner = _own(data_dir / "owner.lock")
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(data_dir / "simulator.sqlite", isolation_level=None, check_same_thread=False)
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = normal")
        self._connection.executescript(resources.files(__package__).joinpath("schema.sql").read_text("utf-8"))

    def path_of(self, file_id: str) -> Path:
        return self._files_dir / file_id

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("begin immediate")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("rollback")
                raise
            self._connection.execute("commit")

    def execute(self, sql: str, parameters: Parameters = ()) -> int:
        """One statement of its own transaction; returns how many rows it changed."""
        with self._lock:
            return self._connection.execute(sql, parameters).rowcount

    def rows(self, sql: str, parameters: Parameters = ()) -> list[sqlite3.Row]:
        with self._lock:
            return self._connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Parameters = ()) -> sqlite3.Row | None:
        with self._lock:
            found: sqlite3.Row | None = self._connection.execute(sql, parameters).fetchone()
            return found

    @contextmanager
    def reading(self, sql: str, parameters: Parameters = ()) -> Iterator[Iterable[sqlite3.Row]]:
        """Rows one by one from a snapshot of their own, without holding up writers."""
        connection = sqlite3.connect(self.data_dir / "simulator.sqlite", check_same_thread=False)
        try:
            connection.row_factory = sqlite3.Row
            yield connection.execute(sql, parameters)
        finally:
            connection.close()

    def close(self) -> None:
        with self._lock:
            self._connection.close()
        os.close(self._owner)


def _own(path: Path) -> int:
    owner = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(owner)
        raise ConfigError(
            f"Another simulator already runs on {path.parent}.", "Stop it, or give this one another --data-dir."
        ) from error
    return owner

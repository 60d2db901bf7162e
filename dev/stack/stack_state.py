"""The local stack's books: which processes it started, under which ports and secrets, and one command at a time."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dev.stack.ports import PortBook
from dev.stack.private_files import SecretBook, write_private
from dev.stack.processes import ProcessRecord, is_alive
from nightmill.domain.errors import ConfigError


class StackBooks:
    """Files under the state directory; all private."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._path = home / "stack.json"

    def open(self) -> None:
        """Make the state directory. Raises ConfigError when it cannot be written."""
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            (self.home / ".gitignore").write_text("*\n")
        except OSError as problem:
            raise ConfigError(
                f"The state directory {self.home} cannot be written ({problem.strerror}).",
                "set NIGHTMILL_HOME to a directory of yours.",
            ) from problem

    def ports(self) -> PortBook:
        """Remembered ports."""
        return PortBook(self.home / "ports.json")

    def secrets(self) -> SecretBook:
        """Airflow's keys and the admin's password."""
        return SecretBook(self.home / "secrets.json")

    def records(self) -> dict[str, ProcessRecord]:
        """What was started, alive or not."""
        stored = self._stored().get("processes", {})
        return {name: ProcessRecord(**values) for name, values in stored.items()}

    def alive(self, name: str) -> bool:
        """Whether the process recorded under this name still runs."""
        record = self.records().get(name)
        return record is not None and is_alive(record)

    def record(self, name: str, record: ProcessRecord | None) -> None:
        """Note a started process, or forget a stopped one."""
        records = self.records()
        records.pop(name, None)
        if record is not None:
            records[name] = record
        self._store(processes={key: asdict(value) for key, value in records.items()})

    def migrated(self) -> str | None:
        """Which Airflow version migrated which database cluster."""
        value = self._stored().get("migrated")
        return str(value) if value is not None else None

    def note_migrated(self, what: str) -> None:
        """Remember a finished migration of Airflow's database."""
        self._store(migrated=what)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One `up` or `down` at a time; a second one waits."""
        descriptor = os.open(self.home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _stored(self) -> dict[str, Any]:
        return dict(json.loads(self._path.read_text())) if self._path.exists() else {}

    def _store(self, **changes: object) -> None:
        write_private(self._path, json.dumps(self._stored() | changes, indent=2))

"""What a stage needs from outside: the ledger, the payload store, connections by id, the clock.

The orchestration layer builds it from Airflow connections, the command line from environment variables, tests from
their own servers. Stages open what they need and close it.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.output.answer_schema import strict_schema
from nightmill.jobs.tokens import TokenCounter
from nightmill.providers.connection import ProviderConnection, RequestSpec
from nightmill.providers.provider import Provider
from nightmill.providers.registry import adapter, open_provider
from nightmill.storage import session
from nightmill.storage.payloads import PayloadStore

_SCRATCH = "nightmill-scratch-"


class Connections(Protocol):
    """Looks up connections by id. Raises ConfigError naming the id and where to define it."""

    def database(self, conn_id: str) -> str:
        """A Postgres DSN."""

    def provider(self, conn_id: str, timeout_s: float) -> ProviderConnection:
        """Base URL and key of a provider's account."""


def utc_now() -> datetime:
    """The present time in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Environment:
    """See the module's text. `now` is a function so that tests can turn the clock."""

    ledger_dsn: str = field(repr=False)
    payloads: PayloadStore
    connections: Connections
    now: Callable[[], datetime] = utc_now
    admit: Callable[[session.Connection], None] | None = field(default=None, repr=False)

    def ledger(self) -> session.Connection:
        """A new connection to the ledger; use it in a with statement, which also closes it. Raises ConfigError where
        the ledger belongs to another Airflow (`admit`)."""
        conn = session.connect(self.ledger_dsn)
        try:
            if self.admit is not None:
                self.admit(conn)
        except BaseException:
            conn.close()
            raise
        return conn

    def source(self, conn_id: str) -> str:
        """The DSN of a source connection."""
        return self.connections.database(conn_id)

    @contextmanager
    def provider(self, definition: JobDefinition) -> Iterator[Provider]:
        """The provider of a job, set up for its requests."""
        config = definition.job.provider
        request = RequestSpec(
            model=config.model,
            task=config.task,
            parameters=config.parameters,
            response_schema=None if config.embeds else strict_schema(definition.output),
            schema_name=definition.name,
            completion_window=config.completion_window,
            max_output_tokens=None if config.embeds else config.max_output_tokens,
        )
        provider = open_provider(config.adapter, self.account(definition), request)
        try:
            yield provider
        finally:
            provider.transport.close()

    def account(self, definition: JobDefinition) -> ProviderConnection:
        """The account that a job's requests go to."""
        config = definition.job.provider
        return self.connections.provider(config.conn_id, config.create_timeout_s)


def token_counter(definition: JobDefinition) -> TokenCounter:
    """Counts a job's prompts as its provider's model does, or a little above. Raises ConfigError for an adapter that is
    not installed."""
    provider = definition.job.provider
    return TokenCounter(provider.model, provider.task, adapter(provider.adapter).token_factor(provider.model))


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory for request and result files that is gone afterwards.

    They hold document text, so what killed workers left behind is removed first: a living one holds the lock on its
    own.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        _remove_abandoned(left)
    with tempfile.TemporaryDirectory(prefix=_SCRATCH) as path, Path(path, "new").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        Path(path, "new").rename(Path(path, "lock"))  # seen by others only once it is held
        yield Path(path)


def _remove_abandoned(folder: Path) -> None:
    try:
        with (folder / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return  # in use, just being made, gone already, or another user's

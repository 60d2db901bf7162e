"""A job on real parts without Airflow: ledger, source table, payload store, local provider, and the stages."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from dev.practice_provider.server import RunningSimulator
from nightmill.gates import checks, compare, driver, registry
from nightmill.jobs import job_folders
from nightmill.jobs.contract import JobDefinition
from nightmill.providers.connection import AnswerLimits, ProviderConnection
from nightmill.services.environment import Environment
from nightmill.stages import freeze, plan, preflight, publish, reconcile, report
from nightmill.stages.run_shard import Finished, Waiting, wake
from nightmill.storage import views
from nightmill.storage.batches import Batch
from nightmill.storage.payloads import PayloadStore

JOB_YAML = """
description: A job for tests.
source:
  conn_id: source
  query: select id, version, tenant, body from documents
  columns: {id: id, version: version, text: body, tenant: tenant}
provider:
  conn_id: provider
  model: echo-1
  parameters: {max_completion_tokens: 50}
  poll_interval_s: 1
  create_timeout_s: 5
  quiet_period_s: 0
  results_grace_s: 0
shards: {count: 2}
retry: {max_attempts: 3, base_delay_s: 0}
publish: {view: notes}
"""
PROMPT = "Summarise this document.\n\n{{ body }}\n"
OUTPUT = '''
from pydantic import BaseModel, ConfigDict


class Output(BaseModel):
    """A note."""

    model_config = ConfigDict(extra="forbid")

    title: str
    pages: int
'''


@dataclass
class TestConnections:
    """Connections by id: `source` is a database, `provider` a base URL."""

    __test__ = False

    source: str
    base_url: str
    answers: AnswerLimits = field(default_factory=AnswerLimits)

    def database(self, conn_id: str) -> str:
        assert conn_id == "source"
        return self.source

    def provider(self, conn_id: str, timeout_s: float) -> ProviderConnection:
        assert conn_id == "provider"
        return ProviderConnection(conn_id, self.base_url, "key", timeout_s=timeout_s, answers=self.answers)


def insert_documents(dsn: str, rows: Sequence[tuple[str, str, str, str]]) -> None:
    """Put (id, version, tenant, body) rows into the source table, which is made on first use."""
    with psycopg.connect(dsn) as conn, conn.cursor() as cursor:
        cursor.execute("create table if not exists documents (id text, version text, tenant text, body text)")
        cursor.executemany("insert into documents values (%s, %s, %s, %s)", rows)


_PAUSES = ("the next probe goes out at", "is waited for until")  # what a shard says that waits on purpose


@dataclass
class Pipeline:
    """Runs the stages of one job by hand. `now` can be moved; `folder` can be edited."""

    admin_dsn: str
    writer_dsn: str
    simulator: RunningSimulator
    folder: Path
    store: Path
    base_url: str = ""
    clock_offset: timedelta = field(default_factory=timedelta)
    answers: AnswerLimits = field(default_factory=AnswerLimits)

    @classmethod
    def at(cls, address: Mapping[str, str]) -> Pipeline:
        """The same pipeline in another process, which has no hold on the provider's."""
        return cls(
            admin_dsn=address["admin_dsn"],
            writer_dsn=address["writer_dsn"],
            simulator=None,  # type: ignore[arg-type]
            folder=Path(address["folder"]),
            store=Path(address["store"]),
            base_url=address["base_url"],
        )

    @property
    def address(self) -> dict[str, str]:
        """What `at` needs, as JSON has it."""
        return {
            "admin_dsn": self.admin_dsn,
            "writer_dsn": self.writer_dsn,
            "folder": str(self.folder),
            "store": str(self.store),
            "base_url": self.base_url or self.simulator.base_url,
        }

    @property
    def env(self) -> Environment:
        return Environment(
            ledger_dsn=self.writer_dsn,
            payloads=PayloadStore(f"file://{self.store}"),
            connections=TestConnections(self.admin_dsn, self.base_url or self.simulator.base_url, self.answers),
            now=lambda: datetime.now(UTC) + self.clock_offset,
        )

    @property
    def live(self) -> JobDefinition:
        return job_folders.read(self.folder)

    def write(self, name: str, content: str) -> None:
        (self.folder / name).write_text(content, "utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        content = (self.folder / name).read_text("utf-8")
        assert old in content
        self.write(name, content.replace(old, new))

    def apply(self) -> str:
        with psycopg.connect(self.admin_dsn) as conn:
            return views.apply(conn, self.live)

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement as the administrator; rows if it returns any."""
        with psycopg.connect(self.admin_dsn, autocommit=True) as conn:
            cursor = conn.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def documents(self, rows: Sequence[tuple[str, str, str, str]]) -> None:
        """Put (id, version, tenant, body) rows into the source table."""
        insert_documents(self.admin_dsn, rows)

    def request(self, run_id: str = "run-1", **changes: Any) -> freeze.RunRequest:
        request = freeze.RunRequest(
            dag_id="nightmill_test",
            run_id=run_id,
            first_try=True,
            dry_run=False,
            params={},
            note=None,
            requested_by="tester",
            data_interval_start=None,
            data_interval_end=None,
        )
        return replace(request, **changes)

    def freeze(self, run_id: str = "run-1", **changes: Any) -> Batch:
        return freeze.run(self.env, self.live, self.request(run_id, **changes))

    def plan(self, batch: Batch) -> list[int]:
        """Plan and price; the shard ids."""
        plan.run(self.env, batch.batch_id)
        return [shard.shard_id for shard in preflight.run(self.env, self.live, batch.batch_id)]

    def wake(self, shard_id: int, *, restarted: bool = False) -> Finished | Waiting:
        return wake(self.env, self.live, shard_id, restarted=restarted)

    def drive(self, shard_ids: Sequence[int], seconds: float = 180, *, restarted: bool = True) -> None:
        """Wake the shards in turn until all are finished. Long pauses that shards make on purpose are jumped over."""
        open_ids, until = list(shard_ids), time.monotonic() + seconds
        while open_ids:
            woken = {one: self.wake(one, restarted=restarted) for one in open_ids}
            assert time.monotonic() < until, f"shards {open_ids} did not finish in {seconds} s"
            open_ids, restarted = [one for one, decision in woken.items() if isinstance(decision, Waiting)], False
            pauses = [one for one in woken.values() if isinstance(one, Waiting) and any(map(one.line.count, _PAUSES))]
            if pauses and len(pauses) == len(open_ids):
                self.turn_clock_to(min(one.until for one in pauses))
            if open_ids:
                time.sleep(0.05)

    def turn_clock_to(self, moment: datetime) -> None:
        """Let the shards think that it is so late, unless it is already."""
        self.clock_offset = max(self.clock_offset, moment - datetime.now(UTC) + timedelta(milliseconds=1))

    def finish(self, batch: Batch) -> report.Report:
        """Everything after run_shard."""
        reconcile.run(self.env, self.live, batch.batch_id)
        driver.run(self.env, self.live, batch.batch_id, checks.GATE)
        driver.run(self.env, self.live, batch.batch_id, compare.GATE)
        driver.run(self.env, self.live, batch.batch_id, registry.approval(0))
        publish.run(self.env, self.live, batch.batch_id, "tester")
        return report.run(self.env, batch.batch_id)

    def run(self, run_id: str = "run-1", **changes: Any) -> report.Report:
        """The whole job."""
        batch = self.freeze(run_id, **changes)
        self.drive(self.plan(batch))
        return self.finish(batch)

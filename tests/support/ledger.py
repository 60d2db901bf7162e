"""A real ledger with one applied job, and batches in any state, made set by set."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, pairwise
from typing import Any

import psycopg
from psycopg import sql as composed

from dev.stack.postgres import Server
from nightmill.domain.gates import GATES, Word
from nightmill.domain.snapshots import BatchStatus, Snapshot
from nightmill.domain.states import BatchState
from nightmill.jobs.contract import JobDefinition
from nightmill.storage import (
    batches,
    contracts,
    fence,
    gates,
    partitions,
    payloads,
    provider_batches,
    publications,
    sending,
    shards,
    views,
)
from nightmill.storage.batches import Batch, Submission
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.ranges import multirange
from nightmill.storage.sending import Intent
from nightmill.storage.session import Connection, connect
from nightmill.storage.settlement import Settling
from nightmill.storage.shards import NewShard, Shard

JOB_YAML = """
description: A job for tests.
source:
  conn_id: source
  query: select id, version, body from documents
  columns: {id: id, version: version, text: body}
provider: {conn_id: provider, model: echo-1}
publish: {view: %s}
"""
OUTPUT = """
from pydantic import BaseModel, ConfigDict


class Output(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str
    pages: int
"""
# What a reader sees: how many rows, of which batches, and how many different titles (one per batch).
LOOK = "select count(*), min(batch_id), max(batch_id), count(distinct title) from results.notes"
_INSERT_ITEMS = """
insert into {items} (batch_id, ordinal, key, source_id, source_version, content_hash, tenant, domain, tokens)
select {batch_id}, n, sha256(convert_to({prefix} || n, 'UTF8')), {prefix} || n, '1', sha256('same'), '', '', 10
from generate_series(0, {items_count} - 1) as n
"""
_INSERT_RESULTS = """
insert into nightmill.result (key, job, tenant, source_id, source_version, content_hash, answer, validators_hash,
    contract_id, prompt_version, model, batch_id)
select key, {job}, tenant, source_id, source_version, content_hash,
    jsonb_build_object('title', source_id, 'pages', ordinal), {validators_hash}, {contract_id}, 'p', 'echo-1', batch_id
from nightmill.item where batch_id = {batch_id} order by key
on conflict (key) where (effective) do nothing
"""
_ROWS = """
insert into {rows} (part_id, batch_id, ordinal, source_id, source_version, tenant, domain, result_id, reused, model,
    prompt_version, answered_at, data_interval_start, data_interval_end, title, pages)
select {batch_id}, {batch_id}, n, {prefix} || n, '1', '', '', n, false, 'echo-1', 'p', now(), data_interval_start,
    data_interval_end, 'batch ' || {batch_id}, n
from generate_series(0, {items_count} - 1) as n, nightmill.batch
where batch.batch_id = {batch_id}
"""
_OUTCOMES = """
insert into {outcomes} (batch_id, ordinal, kind, result_id)
select {batch_id}, n, 'accepted', n from generate_series(0, {items_count} - 1) as n
"""


def definition(name: str = "notes", view: str = "notes", output: str = OUTPUT, mode: str = "replace") -> JobDefinition:
    """A job folder in memory."""
    job_yaml = (JOB_YAML % view).replace(f"{{view: {view}}}", f"{{view: {view}, mode: {mode}}}")
    files = {"job.yaml": job_yaml, "prompt.md": "{{ body }}", "output.py": output}
    return JobDefinition(name, {file: content.encode() for file, content in files.items()})


def fill(server: Server, dsn: str) -> None:
    """Apply the job in a migrated ledger, and let a writer and a reader in."""
    with psycopg.connect(dsn) as conn:
        for role in ("writer", "reader"):
            server.create_login(f"nightmill_test_{role}")
            conn.execute(f"grant nightmill_{role} to nightmill_test_{role}")
    apply(dsn, definition())


@dataclass
class Ledger:
    """One database. `job` is applied; the writer's connections are what a run has, the admin's are the owner's."""

    admin_dsn: str
    writer_dsn: str
    reader_dsn: str
    job: JobDefinition

    def __post_init__(self) -> None:
        self._runs = count(1)

    def writer(self) -> Connection:
        return connect(self.writer_dsn)

    def admin(self, **options: Any) -> Connection:
        return psycopg.connect(self.admin_dsn, **options)

    def reader(self, **options: Any) -> Connection:
        return psycopg.connect(self.reader_dsn, **options)

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement as the administrator; rows if it returns any."""
        with self.admin(autocommit=True) as conn:
            cursor = conn.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def refused(self, statement: str, values: Any = None) -> str:
        """The SQLSTATE with which a statement of the writer is refused; an AssertionError when it is let through."""
        with self.writer() as conn:
            try:
                conn.execute(statement, values)
            except psycopg.Error as fault:
                conn.rollback()
                return fault.sqlstate or ""
            conn.rollback()
        raise AssertionError(f"the database let through: {statement}")

    def created(
        self,
        *,
        interval_start: datetime | None = None,
        interval_end: datetime | None = None,
        params: dict[str, Any] | None = None,
    ) -> Batch:
        """A batch in CREATED without a manifest."""
        number = next(self._runs)
        with self.writer() as conn:
            return batches.create(
                conn,
                Submission(
                    job=self.job.name,
                    view_name=self.job.job.publish.view,
                    dag_id="nightmill_test",
                    run_id=f"run-{number}",
                    contract_id=contracts.pin(conn, self.job),
                    dry_run=False,
                    params=params or {},
                    note=None,
                    requested_by="tester",
                    data_interval_start=interval_start,
                    data_interval_end=interval_end,
                ),
            )

    def frozen(self, items: int = 10, *, prefix: str = "doc-", settle: bool = False, **options: Any) -> Batch:
        """A batch in PLANNING. With `settle` outcomes and staging rows are filled before attaching: the fast way."""
        batch = self.created(**options)
        number = batch.batch_id
        with self.writer() as conn:
            tables = {parent: partitions.create(conn, parent, number) for parent in self._parents}
            values = {"batch_id": number, "prefix": prefix, "items_count": items}
            _run(conn, _INSERT_ITEMS, items=tables["item"], **values)
            if settle:
                _run(conn, _OUTCOMES, outcomes=tables["outcome"], **values)
                _run(conn, _ROWS, rows=tables[self._parents[-1]], **values)
            conn.commit()
            fence.enter_exclusive(conn, batch.holder)
            for parent in self._parents:
                partitions.attach(conn, parent, number)
            payloads.record(conn, number, [])
            batches.record_manifest(conn, batch, self.facts(items))
            return batches.move(conn, batch, BatchState.PLANNING, "manifest frozen")

    def facts(self, items: int) -> dict[str, Any]:
        """What freezing learns."""
        return {
            "source_query": "select 1",
            "source_parameters": {},
            "source_snapshot": "1:1:",
            "item_count": items,
            "prompt_tokens": items * 10,
            "content_hash": b"\x01" * 32,
        }

    def planned(self, items: int = 10, *, shard_count: int = 1, **options: Any) -> tuple[Batch, list[Shard]]:
        """A batch in QUEUED with equal shards."""
        return self.plan(self.frozen(items, **options), items, shard_count)

    def plan(self, batch: Batch, items: int, shard_count: int = 1) -> tuple[Batch, list[Shard]]:
        """Cut a batch in PLANNING into equal shards."""
        bounds = [items * part // shard_count for part in range(shard_count + 1)]
        with self.writer() as conn:
            fence.enter_exclusive(conn, batch.holder)
            new = [NewShard(a, b - 1, multirange(range(a, b)), b - a, 10 * (b - a)) for a, b in pairwise(bounds)]
            shards.replace(conn, batch.batch_id, new)
            batch = batches.move(conn, batch, BatchState.QUEUED, "planned")
            ids = conn.execute(
                "select shard_id from nightmill.shard where batch_id = %s order by first_ordinal", (batch.batch_id,)
            ).fetchall()
            return batch, [shards.get(conn, one) for (one,) in ids]

    def running(self, items: int = 10, **options: Any) -> tuple[Batch, list[Shard]]:
        """A batch in RUNNING whose shards nobody has taken."""
        batch, made = self.planned(items, **options)
        return self.move(batch, BatchState.RUNNING), made

    def validating(self, items: int = 10, *, rows: bool = True, judged: bool = True, **options: Any) -> Batch:
        """A batch in VALIDATING with recorded counts and, where `judged`, passed gates: ready to be published."""
        batch = self.frozen(items, settle=rows, **options)
        batch, _ = self.plan(batch, items)
        with self.writer() as conn:
            partitions.index(conn, self._parents[-1], batch.batch_id)
            conn.commit()
            batch = batches.move(conn, batch, BatchState.RUNNING, "started")
            batches.record_counts(conn, batch, {"accepted": items})
            batch = batches.move(conn, batch, BatchState.VALIDATING, "reconciled")
            for gate in GATES if judged else ():
                gates.record(conn, batch.holder, gate, Word.PASSED, {}, "hash")
            return batches.get(conn, batch.batch_id)

    def publish(self, batch: Batch) -> None:
        """Flip the view to a batch."""
        with self.writer() as conn:
            publications.publish(conn, batch, "tester", lambda: None)

    def move(self, batch: Batch, *states: BatchState) -> Batch:
        """Take edges by the code."""
        for state in states:
            with self.writer() as conn:
                batch = batches.move(conn, batch, state, "test")
        return batch

    def taken(self, batch: Batch, shard: Shard) -> tuple[Shard, fence.Holder]:
        """A shard in RUNNING with its holder."""
        with self.writer() as conn:
            return shards.take_over(conn, shard, batch.generation, "test")

    def intent(self, holder: fence.Holder, ordinals: range) -> ProviderBatch:
        """A provider batch in INTENT."""
        with self.writer() as conn:
            made = sending.intend(
                conn,
                holder,
                Intent(
                    job=self.job.name,
                    token=f"token-{holder.batch_id}-{holder.shard_id}-{ordinals.start}",
                    account="account",
                    adapter="openai",
                    model="echo-1",
                    ordinals=ordinals,
                    prompt_tokens=10 * len(ordinals),
                    file_bytes=100,
                    enqueued_cap=None,
                ),
            )
        assert made is not None
        return made

    def ended(self, holder: fence.Holder, one: ProviderBatch) -> ProviderBatch:
        """Take an intent to ENDED."""
        seen = Snapshot(f"batch-{one.token}", BatchStatus.ENDED, "completed", result_refs={"output": "out"})
        with self.writer() as conn:
            one = provider_batches.staged(conn, holder, one, f"file-{one.token}")
            one = provider_batches.create_goes_out(conn, holder, one)
            one = provider_batches.created(conn, holder, one, seen)
            one = provider_batches.polled(conn, holder, one, seen, datetime.now(UTC))
            return provider_batches.ended(conn, holder, one)

    def store_results(self, batch: Batch) -> None:
        """An effective result for each item of a batch."""
        with self.writer() as conn:
            _run(
                conn,
                _INSERT_RESULTS,
                job=self.job.name,
                validators_hash=self.job.validators_hash,
                contract_id=batch.contract_id,
                batch_id=batch.batch_id,
            )

    def settling(self, batch: Batch) -> Settling:
        """What settling a chunk needs."""
        return Settling.of(self.job, batch.contract_id, batch.options)

    @property
    def _parents(self) -> tuple[str, ...]:
        return ("item", "attempt", "outcome", f"rows_{self.job.job.publish.view}")


def _run(conn: Connection, statement: str, **parts: Any) -> None:
    values = {
        name: part if isinstance(part, composed.Composable) else composed.Literal(part) for name, part in parts.items()
    }
    conn.execute(composed.SQL(statement).format(**values))


def apply(ledger_dsn: str, job: JobDefinition) -> str:
    """Apply a job as the administrator."""
    with psycopg.connect(ledger_dsn) as conn:
        return views.apply(conn, job)

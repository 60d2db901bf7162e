"""freeze_snapshot: one consistent read of the source becomes an immutable manifest with its payloads.

Clearing it returns the run's existing manifest; a killed freeze leaves nothing visible and starts anew.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from nightmill.domain.contract import JobDefinition
from nightmill.domain.errors import StaleWriter
from nightmill.domain.keys import KeyMaker
from nightmill.domain.states import BatchState
from nightmill.domain.tokens import TokenCounter
from nightmill.environment import Environment
from nightmill.storage import batches, contracts, fence, items, partitions, payloads, views
from nightmill.storage.batches import Batch, Submission
from nightmill.storage.items import ItemRow
from nightmill.storage.ledger import Connection
from nightmill.storage.sources import SourceRow, SourceSnapshot
from nightmill.validators.definition import check_definition

log = logging.getLogger(__name__)

EMPTY_DOCUMENT = "empty_document"
OVER_CONTEXT = "over_context"

_PLAIN = frozenset({str, int, bool, type(None)})  # values that look the same after a round trip through JSON


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a DAG run says about itself. `first_try` is False when the task was cleared or retried."""

    dag_id: str
    run_id: str
    first_try: bool
    dry_run: bool
    params: dict[str, Any]
    note: str | None
    requested_by: str | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None


def run(env: Environment, live: JobDefinition, request: RunRequest) -> Batch:
    """Freeze a run's batch and return it; a run that has its manifest already gets that one."""
    with env.ledger() as conn:
        batch = _open_batch(conn, live, request)
        conn.commit()
        if batch.state is not BatchState.CREATED:
            log.info(
                "batch %s is frozen already (%s items, state %s): a new snapshot needs a new run",
                batch.batch_id, batch.item_count, batch.state,
            )  # fmt: skip
            return batch
        pinned = contracts.load(conn, batch.contract_id)
        return _freeze(env, conn, pinned, batch, request)


def _open_batch(conn: Connection, live: JobDefinition, request: RunRequest) -> Batch:
    existing = None if request.first_try else batches.newest_of_run(conn, request.dag_id, request.run_id)
    if existing is not None and existing.state is not BatchState.CREATED:
        return existing
    check_definition(live)
    views.refuse_unapplied(conn, live)
    contract_id = contracts.pin(conn, live)
    if existing is not None and existing.contract_id == contract_id:
        return existing
    if existing is not None:  # nothing was frozen under it: a mended job folder counts at once
        batches.cancel(conn, existing.batch_id, "the job folder was changed before anything was frozen")
    submission = Submission(
        job=live.name,
        view_name=live.job.publish.view,
        dag_id=request.dag_id,
        run_id=request.run_id,
        contract_id=contract_id,
        dry_run=request.dry_run,
        params=request.params,
        note=request.note,
        requested_by=request.requested_by,
        data_interval_start=request.data_interval_start,
        data_interval_end=request.data_interval_end,
    )
    return batches.create(conn, submission)


def _freeze(env: Environment, conn: Connection, pinned: JobDefinition, batch: Batch, request: RunRequest) -> Batch:
    writer = payloads.SegmentWriter(env.payloads, f"{pinned.name}/batch-{batch.batch_id}")
    manifest = _Manifest(pinned, writer)
    bound = {
        name: value
        for name in ("data_interval_start", "data_interval_end")
        if (value := getattr(request, name)) is not None
    }
    table = partitions.create(conn, "item", batch.batch_id)
    filled = partitions.identity(conn, table)
    source = pinned.job.source
    with SourceSnapshot(env.source(source.conn_id), source, pinned.payload_columns) as snapshot:
        rows = snapshot.rows(bound, request.params.get("limit"))
        count = items.copy_in(conn, table, batch.batch_id, manifest.rows(rows))
    writer.flush()
    items.refuse_bad_manifest(conn, table)
    conn.commit()
    facts = {
        "source_query": source.query,
        "source_parameters": {name: value.isoformat() for name, value in bound.items()},
        "source_snapshot": snapshot.name,
        "item_count": count,
        "prompt_tokens": manifest.tokens,
        "content_hash": manifest.hash.digest(),
    }
    fence.enter_exclusive(conn, batch.holder)
    _refuse_frozen(conn, batch)
    partitions.refuse_replaced(conn, table, filled)
    frozen = _attach(conn, batch, pinned, writer, facts)
    log.info(
        "batch %s: froze %s items, %s prompt tokens, %s payload objects (source snapshot %s)",
        batch.batch_id, count, manifest.tokens, len(writer.segments), snapshot.name,
    )  # fmt: skip
    return frozen


def _refuse_frozen(conn: Connection, batch: Batch) -> None:
    if batches.get(conn, batch.batch_id).state is not BatchState.CREATED:
        raise StaleWriter(f"Batch {batch.batch_id} was frozen by somebody else.", "Nothing to do: that one goes on.")


def _attach(
    conn: Connection, batch: Batch, pinned: JobDefinition, writer: payloads.SegmentWriter, facts: dict[str, Any]
) -> Batch:
    """Make the manifest visible: the rest of one short fenced transaction."""
    for parent in ("attempt", "outcome", f"rows_{pinned.job.publish.view}"):
        partitions.create(conn, parent, batch.batch_id)
        partitions.attach(conn, parent, batch.batch_id)
    partitions.attach(conn, "item", batch.batch_id)
    payloads.record(conn, batch.batch_id, writer.segments)
    batches.record_manifest(conn, batch, facts)
    frozen = batches.move(conn, batch, BatchState.PLANNING, "manifest frozen")
    conn.commit()
    return frozen


class _Manifest:
    """Turns source rows into manifest rows and payload lines in one pass, and sums them up."""

    def __init__(self, pinned: JobDefinition, writer: payloads.SegmentWriter) -> None:
        self._pinned = pinned
        self._writer = writer
        self._keys = KeyMaker(pinned.versions)
        self._counter = TokenCounter(pinned.job.provider.model)
        self.tokens = 0
        self.hash = hashlib.sha256()

    def rows(self, source: Iterator[SourceRow]) -> Iterator[ItemRow]:
        """Manifest rows in ordinal order; payload lines go to the writer on the way."""
        for ordinal, row in enumerate(source):
            line = orjson.dumps(row.values, default=str, option=orjson.OPT_SORT_KEYS)
            content = hashlib.sha256(line).digest()
            version = row.source_version if row.source_version is not None else content.hex()
            key = self._keys.key(row.tenant, row.source_id, version)
            plain = _PLAIN.issuperset(map(type, row.values.values()))
            tokens, skip = self._measure(row.values if plain else orjson.loads(line))
            self._writer.add(line)
            self.tokens += tokens
            self.hash.update(key)
            self.hash.update(content)
            yield ordinal, key, row.source_id, version, content, row.tenant, row.domain, tokens, skip

    def _measure(self, values: dict[str, Any]) -> tuple[int, str | None]:
        """Prompt tokens of the rendered request, and why it is never sent (or None)."""
        provider = self._pinned.job.provider
        text = values[self._pinned.job.source.columns.text]
        if text is None or not str(text).strip():
            return 0, EMPTY_DOCUMENT
        tokens = self._counter.count_messages(self._pinned.prompt.render(values))
        window = provider.context_window_tokens
        if window is not None and tokens + provider.output_reserve_tokens > window:
            return tokens, OVER_CONTEXT
        return tokens, None

"""freeze_snapshot: one consistent read of the source becomes an immutable manifest with its payloads.

Clearing it returns the run's existing manifest while the batch lives or is published, and opens a new one where it
ended unpublished, or where a backfill runs the night again. A killed freeze leaves nothing visible and starts anew.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nightmill.checks.inputs import InputChecker
from nightmill.domain.states import BatchState
from nightmill.domain.wording import pluralised
from nightmill.jobs.check.definition import check_definition
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.filters import as_json, chosen, refuse_unknown
from nightmill.jobs.rules.data_interval import refuse_none, refuse_unfit
from nightmill.jobs.rules.publishing import Decision, Publishing, decide
from nightmill.jobs.rules.run_options import RunOptions
from nightmill.jobs.settings.publish_settings import Publish, PublishMode
from nightmill.services.environment import Environment, token_counter
from nightmill.storage import batches, contracts, fence, freezing, items, partitions, payloads, views
from nightmill.storage.batches import Batch, Submission
from nightmill.storage.manifest import Manifest
from nightmill.storage.session import Connection
from nightmill.storage.sources import SourceSnapshot

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a DAG run says about itself. `first_try` is False when the task was cleared or retried; Airflow raises
    `max_tries` when it is cleared, and not for a retry; after the `last_try` it does not retry it. `by_hand`: a person
    filled in its form. `backfilled`: a backfill runs it, and its publish task has not ended since: see
    orchestration.tasks."""

    dag_id: str
    run_id: str
    first_try: bool
    dry_run: bool
    params: dict[str, Any]
    note: str | None
    requested_by: str | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    last_try: bool = False
    max_tries: int = 0
    by_hand: bool = False
    publish: str = Publishing.AUTO
    backfilled: bool = False


def run(env: Environment, live: JobDefinition, request: RunRequest) -> Batch:
    """Freeze a run's batch and return it; a run that has its manifest already gets that one."""
    with env.ledger() as conn:
        batch = _open_batch(conn, live, request)
        conn.commit()
        if batch.state is not BatchState.CREATED:
            batches.refuse_without_data(batch)
            log.info(
                "batch %s is frozen already (%s items, state %s): a new snapshot needs a new run or a backfill",
                batch.batch_id, batch.item_count, batch.state,
            )  # fmt: skip
            return batch
        pinned = contracts.load(conn, batch.contract_id)
        with freezing.explained(env.ledger, conn, batch, last_try=request.last_try):
            return _freeze(env, conn, pinned, batch)


def _open_batch(conn: Connection, live: JobDefinition, request: RunRequest) -> Batch:
    existing = None if request.first_try else batches.newest_of_run(conn, request.dag_id, request.run_id)
    if existing is not None and not freezing.opens_anew(
        conn, existing, request.max_tries, backfilled=request.backfilled
    ):
        return existing
    check_definition(live)
    refuse_unknown(live.job.source.filters, request.params)
    refuse_unfit(live.job.source.query, request.data_interval_start, request.data_interval_end)
    by_interval = live.job.publish.mode is PublishMode.BY_INTERVAL
    if by_interval:
        refuse_none(live.job.publish.view, request.data_interval_start, request.data_interval_end)
    views.refuse_unapplied(conn, live)
    contract_id = contracts.pin(conn, live)
    if existing is not None and not existing.at_rest:
        if existing.contract_id == contract_id:
            return existing
        # Nothing was frozen under it: a mended job folder counts at once.
        batches.cancel(conn, existing.batch_id, "the job folder was changed before anything was frozen")
    submission = _submission(live, request, contract_id)
    if by_interval:
        batches.refuse_second_of_interval(conn, submission)
    return batches.create(conn, submission)


def _submission(live: JobDefinition, request: RunRequest, contract_id: int) -> Submission:
    filters, limit = live.job.source.filters, RunOptions.of(request.params).limit
    values = chosen(filters, request.params)
    decision = decide(request.publish, filters, values, limit, by_hand=request.by_hand)
    _say_what_readers_will_see(decision, live.job.publish)
    preview = decision.publish is Publishing.NO
    return Submission(
        job=live.name,
        view_name=live.job.publish.view,
        dag_id=request.dag_id,
        run_id=request.run_id,
        contract_id=contract_id,
        dry_run=request.dry_run,
        params=request.params | as_json(values) | ({"publish": str(Publishing.NO)} if preview else {}),
        note=request.note,
        requested_by=request.requested_by,
        data_interval_start=request.data_interval_start,
        data_interval_end=request.data_interval_end,
        max_tries=request.max_tries,
    )


def _say_what_readers_will_see(decision: Decision, publish: Publish) -> None:
    view = publish.view
    if decision.publish is Publishing.NO:
        why = f" ({decision.narrowed})" if decision.narrowed else ""
        log.info("this run is a preview%s: readers of results.%s go on seeing what it shows now", why, view)
    elif decision.narrowed and publish.mode is PublishMode.BY_KEY:
        log.info("this run has %s: what results.%s shows of other ids stays as it is", decision.narrowed, view)
    elif decision.narrowed and publish.mode is PublishMode.BY_INTERVAL:
        log.warning(
            "this run has %s and will be published: results.%s then shows these rows of its interval and no others, to "
            "everybody", decision.narrowed, view,
        )  # fmt: skip
    elif decision.narrowed:
        log.warning(
            "this run has %s and will be published: results.%s then shows these rows and no others, to everybody",
            decision.narrowed, view,
        )  # fmt: skip


def _freeze(env: Environment, conn: Connection, pinned: JobDefinition, batch: Batch) -> Batch:
    writer = payloads.SegmentWriter(env.payloads, payloads.batch_folder(pinned.name, batch.batch_id))
    inputs = InputChecker(pinned, token_counter(pinned))
    manifest = Manifest(pinned, inputs.measure, writer.add)
    bound = _bound(pinned, batch)
    made = partitions.make(conn, "item", batch.batch_id)
    source = pinned.job.source
    with SourceSnapshot(env.source(source.conn_id), source, pinned.columns_read) as snapshot:
        rows = snapshot.rows(bound, batch.options.limit)
        count = items.copy_in(conn, made.table, batch.batch_id, manifest.rows(rows))
    writer.flush()
    items.refuse_changed_contents(conn, made.table)
    items.index(conn, made)
    conn.commit()
    facts = {
        "source_query": source.query,
        "source_parameters": as_json(bound),
        "source_snapshot": snapshot.name,
        "item_count": count,
        "prompt_tokens": manifest.tokens,
        "content_hash": manifest.hash.digest(),
    }
    fence.enter_exclusive(conn, batch.holder)
    freezing.refuse_frozen(conn, batch)
    partitions.refuse_replaced(conn, made)
    if count == 0:
        log.warning(
            "batch %s: the source query returned no rows: the view will show none. To refuse that, add "
            "ExpectTableRowCountToBeBetween with min_value 1 to checks.yaml.",
            batch.batch_id,
        )
    if inputs.noted:
        log.info("batch %s: checks of inputs noted %s", batch.batch_id, inputs.noted_in_words)
    frozen = _attach(conn, batch, writer, facts)
    log.info(
        "batch %s: froze %s, %s prompt tokens, %s (source snapshot %s)",
        batch.batch_id, pluralised(count, "item"), manifest.tokens, pluralised(len(writer.segments), "payload object"),
        snapshot.name,
    )  # fmt: skip
    return frozen


def _bound(pinned: JobDefinition, batch: Batch) -> dict[str, Any]:
    """What the query's parameters get: as the batch was opened with, whatever a cleared run asks now."""
    interval = {"data_interval_start": batch.data_interval_start, "data_interval_end": batch.data_interval_end}
    known = {name: value for name, value in interval.items() if value is not None}
    return known | chosen(pinned.job.source.filters, batch.params)


def _attach(conn: Connection, batch: Batch, writer: payloads.SegmentWriter, facts: dict[str, Any]) -> Batch:
    """Make the manifest visible: the rest of one short fenced transaction."""
    partitions.create(conn, "attempt", batch.batch_id)
    for parent in ("attempt", "item"):
        partitions.attach(conn, parent, batch.batch_id)
    payloads.record(conn, batch.batch_id, writer.segments)
    batches.record_manifest(conn, batch, facts)
    frozen = batches.move(conn, batch, BatchState.PLANNING, "manifest frozen")
    conn.commit()
    return frozen

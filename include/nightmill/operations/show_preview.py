"""A preview that somebody wants readers to see: it goes back to VALIDATING, and its gates are asked again in the same
generation. What was frozen, answered and paid stays as it is."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from nightmill.domain.errors import Terminal
from nightmill.domain.states import BatchState
from nightmill.jobs.filters import chosen
from nightmill.jobs.rules.publishing import Publishing, decide
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.services.environment import Environment
from nightmill.storage import batches, contracts, holds
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wish:
    """Which preview, in which run of nightmill_publish, and for whom. `confirm_narrowed`: the person knows that it
    carries less than the job declares, and that readers then see no more than that."""

    batch_id: int
    run_id: str
    by: str
    confirm_narrowed: bool = False
    note: str | None = None


def look(env: Environment, batch_id: int, *, confirm_narrowed: bool) -> Batch:
    """The preview, if it can be shown. Raises Terminal with the remedy where it cannot."""
    with env.ledger() as conn:
        batch = batches.get(conn, batch_id)
        _refuse(conn, batch, confirm_narrowed)
        return batch


def run(env: Environment, wish: Wish) -> Batch:
    """Take a preview up. The run that has done so already gets its batch as it stands."""
    with env.ledger() as conn:
        batch = batches.get(conn, wish.batch_id)
        if batch.options.publish_run == wish.run_id and batch.state is not BatchState.STAGED:
            log.info("batch %s was taken up by this run, and is %s", batch.batch_id, batch.state)
            batches.refuse_without_data(batch)
            return batch
        _refuse(conn, batch, wish.confirm_narrowed)
        why = f"{wish.by} publishes the preview" + (f": {wish.note}" if wish.note else "")
        batches.move(conn, batch, BatchState.VALIDATING, why)
        batches.take_up(conn, batch, Publishing.YES, wish.run_id)
        conn.commit()
        log.info("batch %s: %s", batch.batch_id, why)
        return batches.get(conn, batch.batch_id)


def give_up(env: Environment, run_id: str) -> Batch | None:
    """Make a preview again of what a run has taken up and not published; None where there is nothing."""
    with env.ledger() as conn:
        batch_id = batches.taken_up(conn, run_id)
        if batch_id is None:
            return None
        batch = batches.get(conn, batch_id)
        if batch.state is BatchState.BLOCKED:
            batch = batches.move(conn, batch, BatchState.VALIDATING, "its publishing was given up")
        batches.move(conn, batch, BatchState.STAGED, "a preview again: its publishing was given up")
        batches.take_up(conn, batch, Publishing.NO, run_id)
        conn.commit()
        return batches.get(conn, batch_id)


_ONLY = {
    PublishMode.REPLACE: "these rows and no others, to everybody",
    PublishMode.BY_INTERVAL: "these rows and no others of its interval, to everybody",
    PublishMode.BY_KEY: "only a part of what the run was to change, to everybody",
}


def _refuse(conn: Connection, batch: Batch, confirm_narrowed: bool) -> None:
    if batch.state is not BatchState.STAGED:
        raise _no_preview(batch)
    if hold := holds.on_batch(conn, batch):  # before anybody is asked to approve
        raise holds.refusal(hold, "take_up")
    job = contracts.load(conn, batch.contract_id).job
    filters = job.source.filters
    values = chosen(filters, batch.params)
    narrowed = decide(Publishing.NO, filters, values, batch.options.limit, by_hand=True).narrowed
    if narrowed and not confirm_narrowed:
        raise Terminal(
            f"Batch {batch.batch_id} has {narrowed}: results.{batch.view_name} would show {_ONLY[job.publish.mode]}.",
            "If that is meant, say so: confirm_narrowed in the form, --confirm-narrowed on the command line. To show "
            "all rows, trigger a run without it: the answers of this batch are reused without a call.",
        )


def _no_preview(batch: Batch) -> Terminal:
    told = f"Batch {batch.batch_id} is {batch.state} ({batch.state_reason})"
    run_id = batch.options.publish_run
    if not batch.ended and run_id:
        return Terminal(
            f"{told}: run {run_id} of nightmill_publish has taken it up.",
            "Look at that run and clear the task that failed, or mark the run as failed: the batch is a preview again.",
        )
    if not batch.ended:
        return Terminal(f"{told}: it is not a preview.", "Wait for its own run, which publishes it.")
    return Terminal(
        f"{told}: it is not a preview.",
        "Trigger a run with the same values and publish = yes: every accepted answer is reused without a call.",
    )

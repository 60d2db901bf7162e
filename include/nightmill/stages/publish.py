"""publish: flips what the view shows to this batch, in one transaction with the batch's last edge. A preview stops
before that."""

from __future__ import annotations

import logging

from nightmill.domain.contract import JobDefinition
from nightmill.domain.errors import Blocked, Terminal
from nightmill.domain.states import BatchState
from nightmill.environment import Environment
from nightmill.gates import registry
from nightmill.storage import batches, publications
from nightmill.storage.batches import Batch
from nightmill.storage.ledger import Connection
from nightmill.storage.publications import Published

log = logging.getLogger(__name__)


def run(env: Environment, live: JobDefinition, batch_id: int, published_by: str) -> Published | None:
    """Publish a batch; None for a dry run and for a preview. Raises Terminal for one that ended without data.

    Publishing asks for the gates that `live` has, as this generation passed them. Repeating it does nothing while the
    view shows this batch, and is refused once something else was published or the batch was rolled back.
    """
    with env.ledger() as conn:
        batch = batches.get(conn, batch_id)
        batches.refuse_without_data(batch)
        before = publications.current(conn, batch.view_name)
        if batch.state is BatchState.PUBLISHED:
            return _already_published(before, batch_id, batch.view_name)
        if batch.at_rest:
            log.info("batch %s is %s: %s", batch_id, batch.state, publications.readers_see(batch.view_name, before))
            return None
        if batch.state is BatchState.BLOCKED:
            raise Blocked(
                f"Batch {batch_id} is BLOCKED by {batch.blocked_by}: {batch.state_reason}.",
                f"Clear {batch.task_to_clear} and its downstream tasks: marking it as success opens nothing.",
            )
        if batch.is_preview:
            _stage(conn, live, batch, before)
            return None
        return _publish(conn, live, batch, published_by)


def _publish(conn: Connection, live: JobDefinition, batch: Batch, published_by: str) -> Published:
    shown = publications.publish(conn, batch, published_by, lambda: registry.admit(conn, live, batch))
    conn.commit()
    log.info(
        "results.%s shows batch %s since %s (publication %s, %s gaps)",
        shown.view_name, batch.batch_id, shown.published_at, shown.publish_seq, shown.gaps,
    )  # fmt: skip
    return shown


def _stage(conn: Connection, live: JobDefinition, batch: Batch, before: Published | None) -> None:
    publications.stage(conn, batch, lambda: registry.admit(conn, live, batch))
    conn.commit()
    log.info("batch %s is a preview: %s", batch.batch_id, publications.readers_see(batch.view_name, before))


def _already_published(shown: Published | None, batch_id: int, view: str) -> Published:
    if shown is not None and shown.batch_id == batch_id:
        log.info("results.%s shows batch %s already", view, batch_id)
        return shown
    raise Terminal(
        f"Batch {batch_id} was published before; results.{view} shows batch {shown.batch_id if shown else 'none'} now.",
        "A newer batch was published or this one was rolled back: trigger a new run to publish again.",
    )

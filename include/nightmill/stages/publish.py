"""publish: flips what the view shows to this batch, in one transaction with the batch's last edge. A preview stops
before that."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from nightmill.domain.errors import Blocked, Terminal
from nightmill.domain.states import BatchState
from nightmill.gates import registry
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.services.environment import Environment
from nightmill.storage import batches, by_key, contracts, holds, merging, publications
from nightmill.storage.batches import Batch
from nightmill.storage.part_builds import TRIES, Built, OutOfDate
from nightmill.storage.publications import Published
from nightmill.storage.session import Connection

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
            return _already_published(conn, before, batch)
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
    for tries_left in range(TRIES, 0, -1):
        built = _build(conn, live, batch)
        try:
            shown = publications.publish(conn, batch, published_by, lambda: registry.admit(conn, live, batch), built)
            break
        except OutOfDate:
            conn.rollback()
            if tries_left == 1:
                raise
    conn.commit()
    log.info(
        "results.%s shows batch %s since %s (publication %s, %s gaps)",
        shown.view_name, batch.batch_id, shown.published_at, shown.publish_seq, shown.gaps,
    )  # fmt: skip
    return shown


def _build(conn: Connection, live: JobDefinition, batch: Batch) -> Built | None:
    """What must be written anew before the flip; None where the batch's own rows are all."""
    mode = publications.mode_of(conn, batch.view_name)
    if mode is PublishMode.REPLACE:
        return None
    publications.part_of(batch)
    registry.admit(conn, live, batch)  # nothing is built for a batch that publish refuses
    shown = publications.current(conn, batch.view_name)
    conn.commit()
    if mode is PublishMode.BY_KEY:
        return by_key.build(conn, batch, contracts.load(conn, batch.contract_id), shown)
    return merging.build_beside(conn, batch, shown)


def _stage(conn: Connection, live: JobDefinition, batch: Batch, before: Published | None) -> None:
    publications.stage(conn, batch, lambda: registry.admit(conn, live, batch))
    conn.commit()
    log.info("batch %s is a preview: %s", batch.batch_id, publications.readers_see(batch.view_name, before))


def _already_published(conn: Connection, shown: Published | None, batch: Batch) -> Published:
    batch_id, view = batch.batch_id, batch.view_name
    if shown is not None and publications.shows(conn, shown, batch):
        log.info("results.%s shows batch %s already", view, batch_id)
        start, end = batch.data_interval_start, batch.data_interval_end
        return replace(shown, batch_id=batch_id, data_interval_start=start, data_interval_end=end)
    hold = holds.newest_of_batch(conn, batch)
    now = f"results.{view} shows batch {shown.batch_id if shown else 'none'} now"
    if hold is not None:
        raise Terminal(
            f"Batch {batch_id} was published before, and {hold.why}; {now}.",
            f"To show it again: `python -m nightmill rollback {view} --to SEQ` with its publication, which `history` "
            "names. To replace it, trigger a new run.",
        )
    raise Terminal(
        f"Batch {batch_id} was published before; {now}.",
        "A newer batch was published: trigger a new run to publish again.",
    )


def event_of(shown: Published) -> dict[str, Any]:
    """What an asset event says of a publication: what was published where, and the data interval of its rows, from
    which a job that follows takes its own."""
    interval = {"data_interval_start": shown.data_interval_start, "data_interval_end": shown.data_interval_end}
    said = {name: moment and moment.isoformat() for name, moment in interval.items()}
    ids = {"view": shown.view_name, "batch_id": shown.batch_id, "publish_seq": shown.publish_seq}
    return {**ids, "kind": "publish", **said}

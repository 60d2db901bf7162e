"""cancel: one durable request. It raises the batch's generation, so that no writer of before can commit any more.

No provider is called here: the request must go through when the provider does not answer. Maintenance stops what was
sent, and collects what is paid.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from nightmill.domain.errors import ConfigError, Terminal
from nightmill.domain.states import BatchState
from nightmill.services.environment import Environment
from nightmill.storage import batches, provider_batches
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Target:
    """Which batch: by its number, or the newest one of a DAG run."""

    batch_id: int | None = None
    dag_id: str | None = None
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A cancelled batch. `requested` is False when it had been cancelled before; `in_flight` counts provider batches
    that maintenance stops and collects."""

    batch: Batch
    requested: bool
    in_flight: int


def run(env: Environment, target: Target, reason: str) -> Cancelled:
    """Cancel a batch. Raises ConfigError where there is none such, Terminal where it has ended otherwise.

    Cancelling again changes nothing.
    """
    with env.ledger() as conn:
        found = _find(conn, target)
        if found is None:
            raise ConfigError(
                f"The run {target.run_id!r} of {target.dag_id!r} has no batch.",
                "Look up the batch with `python -m nightmill status`; a run without a batch has sent nothing.",
            )
        conn.commit()
        before = batches.get(conn, found)
        conn.commit()
        batch = batches.cancel(conn, found, reason)
        conn.commit()
        in_flight = provider_batches.live_of_batch(conn, found)
    if batch.state is not BatchState.CANCELLED:
        raise Terminal(
            f"Batch {batch.batch_id} has ended as {batch.state}: there is nothing to cancel.",
            "To take back what a view shows, publish a newer batch.",
        )
    if not before.ended:
        log.info("batch %s is CANCELLED (%s), generation %s", batch.batch_id, reason, batch.generation)
    return Cancelled(batch, not before.ended, in_flight)


def _find(conn: Connection, target: Target) -> int | None:
    if target.batch_id is not None:
        return target.batch_id
    if not target.dag_id or not target.run_id:
        raise ConfigError("Neither a batch nor a run is named.", "Give the batch, or both dag_id and run_id.")
    batch = batches.newest_of_run(conn, target.dag_id, target.run_id)
    return batch.batch_id if batch else None

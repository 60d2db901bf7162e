"""What every way of freezing a batch shares."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from nightmill.domain.errors import NightmillError, StaleWriter, Terminal
from nightmill.domain.states import BatchState
from nightmill.storage import batches
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

log = logging.getLogger(__name__)

TASK = "freeze_snapshot"


@contextmanager
def explained(reconnect: Callable[[], Connection], conn: Connection, batch: Batch, *, last_try: bool) -> Iterator[None]:
    """Leave the reason of a failure with the batch, which stays CREATED, and whether a person must clear its task: for
    a fault that does not pass by itself, and after the last try."""
    if batch.blocked_by is not None:
        batches.explain(conn, batch, f"{TASK} was cleared")
        conn.commit()
    try:
        yield
    except StaleWriter:
        raise
    except Exception as fault:
        conn.close()  # with what it holds, or is broken by
        # What is not ours can quote a document.
        reason = str(fault) if isinstance(fault, NightmillError) else f"freezing ended with {type(fault).__name__}"
        with suppress(NightmillError), reconnect() as fresh:
            over = last_try or isinstance(fault, Terminal)
            batches.explain(fresh, batch, reason, blocked_by=TASK if over else None)
        raise


def opens_anew(conn: Connection, existing: Batch, max_tries: int, *, backfilled: bool = False) -> bool:
    """Whether a later try of its run's first task asks for another batch: where nothing was frozen yet, where a
    person cleared the task of one that has ended without data, and where a backfill runs a night again that has data.
    A retry of that one gets it back as it is.

    Airflow (3.3.2) raises max_tries on a clear and not on a retry. A backfill clears the run that a night has.
    """
    cleared = max_tries > existing.max_tries
    if cleared and existing.at_rest and (backfilled or existing.without_data):
        log.info(
            "batch %s is %s (%s), and %s: a new batch of this run begins", existing.batch_id, existing.state,
            existing.state_reason, "a backfill runs it again" if backfilled else "this task was cleared",
        )  # fmt: skip
        return True
    if not existing.ended:
        batches.note_cleared(conn, existing, max_tries)
        return existing.state is BatchState.CREATED
    return False


def refuse_frozen(conn: Connection, batch: Batch) -> None:
    """Raise StaleWriter unless the batch still waits for its manifest. Enter the exclusive fence first."""
    if batches.get(conn, batch.batch_id).state is not BatchState.CREATED:
        raise StaleWriter(f"Batch {batch.batch_id} was frozen by somebody else.", "Nothing to do: that one goes on.")

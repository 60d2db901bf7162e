"""The driver of all gates: unblocks the batch, asks the gate, and writes the verdict with what it means for the batch.

A verdict and its state edge are one transaction, so a batch is never blocked or ended without the record of why.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import NoReturn, assert_never

from nightmill.domain.errors import Blocked, Terminal
from nightmill.domain.states import BatchState
from nightmill.gates.port import Gate, Look, NotConfigured, Passed, Refused, Rejected, Verdict, Waiting
from nightmill.jobs.contract import JobDefinition
from nightmill.services.environment import Environment
from nightmill.storage import batches, gates, rollbacks
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

log = logging.getLogger(__name__)


def run(env: Environment, live: JobDefinition, batch_id: int, gate: Gate) -> Verdict | None:
    """Ask a gate about a batch and record what it says; None for a batch at rest, and for a preview that it is not
    asked about.

    Raises Blocked where it refuses, Terminal where the batch ends by it or has ended without data. Waiting is returned:
    the batch is BLOCKED then, and whoever asks the person goes on from there.
    """
    with env.ledger() as conn:
        batch = batches.get(conn, batch_id)
        batches.refuse_without_data(batch)
        if batch.at_rest:
            log.info("batch %s is %s: %s has nothing to look at", batch_id, batch.state, gate.name)
            return None
        if batch.is_preview and not gate.for_previews:
            log.info("batch %s is a preview: %s is asked when somebody publishes it", batch_id, gate.name)
            return None
        batch = batches.unblock(conn, batch, gate.name.task)
        conn.commit()
        verdict = gate.evaluate(Look(env, conn, live, batch)) if gate.applies(live) else NotConfigured()
        conn.commit()
        return settle(conn, batch, gate, verdict)


def settle(conn: Connection, batch: Batch, gate: Gate, verdict: Verdict) -> Verdict:
    """Write a verdict and what it means for the batch, in one transaction, and raise where the task must fail."""
    match verdict:
        case Passed():
            if not verdict.recorded:
                _record(conn, batch, gate, verdict, verdict.by)
        case NotConfigured():
            _record(conn, batch, gate, verdict, None)
        case Waiting():
            _block(conn, batch, gate, f"waits for {verdict.what_for}")
            _record(conn, batch, gate, verdict, None)
        case Refused():
            _close(conn, batch, gate, verdict)
        case Rejected():
            _reject(conn, batch, gate, verdict)
        case _:
            assert_never(verdict)
    log.info("batch %s: %s: %s", batch.batch_id, gate.name, verdict.word)
    if isinstance(verdict, Refused):
        _refuse(batch, verdict)
    if isinstance(verdict, Rejected):
        batches.refuse_without_data(batches.get(conn, batch.batch_id))
    return verdict


def _reject(conn: Connection, batch: Batch, gate: Gate, verdict: Rejected) -> None:
    """Answers are revoked together with the edge: the next run finds both or neither."""
    reason = f"{gate.name}: rejected by {verdict.by}: {verdict.why}"
    if verdict.revoke:
        reason += "; its answers are not reused"
    batches.move(conn, batch, BatchState.REJECTED, reason)
    if verdict.revoke:
        revoked = {gates.REVOKED: rollbacks.revoke_rejected(conn, batch)}
        verdict = replace(verdict, details=verdict.details | revoked)
    _record(conn, batch, gate, verdict, verdict.by)


def _close(conn: Connection, batch: Batch, gate: Gate, verdict: Refused) -> None:
    if verdict.ends is None:
        _block(conn, batch, gate, verdict.why)
    else:
        batches.move(conn, batch, verdict.ends, verdict.why)
    _record(conn, batch, gate, verdict, None)


def _block(conn: Connection, batch: Batch, gate: Gate, reason: str) -> None:
    """A batch that another gate has blocked stays with that one."""
    if batch.state is BatchState.VALIDATING:
        batches.block(conn, batch, gate.name.task, reason)


def _record(conn: Connection, batch: Batch, gate: Gate, verdict: Verdict, decided_by: str | None) -> None:
    """Comes after the state edge: the exclusive fence must not be taken behind the shared one."""
    gates.record(conn, batch.holder, gate.name, verdict.word, verdict.details, verdict.config_hash, decided_by)
    conn.commit()


def _refuse(batch: Batch, verdict: Refused) -> NoReturn:
    cause = "\n".join(
        (
            f"Batch {batch.batch_id}: {verdict.why}.",
            *(f"To look, as nightmill_owner: {one};" for one in dict.fromkeys(verdict.queries)),
        )
    )
    raise (Blocked if verdict.ends is None else Terminal)(cause, verdict.remedy)

"""A batch before its gates, and gates that say what a test wants."""

from __future__ import annotations

from typing import Any

from nightmill.domain.gates import GateName, Word
from nightmill.gates import compare, driver, registry
from nightmill.gates.port import Gate, Passed, Verdict
from nightmill.stages import reconcile
from nightmill.storage import gates
from nightmill.storage.batches import Batch
from support.pipeline import Pipeline
from support.steps import batch_of

APPROVE = "approve: {timeout_h: 24}\npublish:"


def gate_that_says(verdict: Verdict, name: GateName = GateName.COMPARE, **options: Any) -> Gate:
    return Gate(name, lambda _live: True, lambda _look: verdict, **options)


def settled(pipeline: Pipeline, run_id: str = "run-1", **changes: Any) -> Batch:
    """A batch in VALIDATING, reconciled."""
    batch = pipeline.freeze(run_id, **changes)
    pipeline.drive(pipeline.plan(batch))
    return reconcile.run(pipeline.env, pipeline.live, batch.batch_id)


def checked(pipeline: Pipeline, batch: Batch) -> None:
    """check_staging without Great Expectations, and compare."""
    ask(pipeline, batch, gate_that_says(Passed({}, "none"), GateName.CHECK_STAGING))
    ask(pipeline, batch, compare.GATE)


def ask(pipeline: Pipeline, batch: Batch, gate: Gate) -> Verdict | None:
    return driver.run(pipeline.env, pipeline.live, batch.batch_id, gate)


def approve(pipeline: Pipeline, batch: Batch, clears: int = 8) -> Verdict | None:
    """The task approve, begun."""
    return ask(pipeline, batch, registry.approval(clears))


def verdicts(pipeline: Pipeline, batch: Batch) -> dict[GateName, Word]:
    """The newest of this generation."""
    with pipeline.env.ledger() as conn:
        return {one.gate: one.word for one in gates.newest(conn, batch_of(pipeline, batch.batch_id).holder)}

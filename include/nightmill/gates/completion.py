"""The completion gate: how much of what was planned has an accepted answer. Gaps that the job does not allow end the
batch."""

from __future__ import annotations

import logging

from nightmill.domain.contract import JobDefinition
from nightmill.domain.gates import GateName
from nightmill.domain.keys import content_hash
from nightmill.domain.states import BatchState
from nightmill.gates.port import Details, Gate, Look, Passed, Verdict
from nightmill.gates.port import Refused as Ended
from nightmill.storage import batches

log = logging.getLogger(__name__)


def always(_live: JobDefinition) -> bool:
    """Every job has it."""
    return True


def evaluate(look: Look) -> Verdict:
    """Compare the completion rate with the job's limit, which is read live."""
    batch = look.batch
    counts = batch.counts or {}
    rate, wanted = completion_rate(counts), look.live.job.quality.min_completion_rate
    gaps = dict(batches.gaps_by_code(look.conn, batch.batch_id))
    details: Details = {"completion_rate": rate, "min_completion_rate": wanted, "counts": counts, "gaps": gaps}
    hashed = content_hash({"min": wanted}).hex()[:16]
    log.info("batch %s: completion rate %.4f (at least %.4f), %s", batch.batch_id, rate, wanted, counts)
    if rate >= wanted:
        return Passed(details, hashed)
    return Ended(
        f"completion rate {rate:.4f} is below quality.min_completion_rate {wanted:.4f}; gaps by code: {gaps}. The view "
        "stays where it was",
        "Trigger a new run: accepted items are reused without a call and transient gaps are sent again. For the other "
        "gaps correct the prompt or the output model, or allow them in quality.min_completion_rate. Clearing "
        "freeze_snapshot does the same in this run. They are listed by `python -m nightmill dead-letters --batch "
        f"{batch.batch_id} --count`.",
        details,
        hashed,
        ends=BatchState.PARTIAL_FAILED,
    )


def completion_rate(counts: dict[str, int]) -> float:
    """(accepted + reused) / (planned - excluded); 1 when nothing was to be done."""
    good = counts.get("accepted", 0) + counts.get("reused", 0)
    planned = sum(counts.values()) - counts.get("excluded", 0)
    return good / planned if planned else 1.0


GATE = Gate(GateName.COMPLETION, always, evaluate)

"""The completion gate: how much of what was planned has an accepted answer. Gaps that the job does not allow end the
batch."""

from __future__ import annotations

import logging

from nightmill.domain.gates import GateName
from nightmill.domain.keys import content_hash
from nightmill.domain.states import BatchState
from nightmill.gates.port import TOLD, Details, Gate, Look, Passed, Refused, Verdict, always
from nightmill.jobs.rules.gaps import decide, told
from nightmill.storage import batches, gaps
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

PREVIOUS_OF = "previous_of"  # of a verdict's details

log = logging.getLogger(__name__)


def evaluate(look: Look) -> Verdict:
    """Hold the gaps against the job's contract for them, which is read live."""
    batch, settings = look.batch, look.live.job.gaps
    counts = batch.counts or {}
    decision = decide(settings, counts, gaps.of_batch(look.conn, batch.batch_id))
    recorded = gaps.facts(look.conn, batch.batch_id) or {}
    by_code = dict(batches.gaps_by_code(look.conn, batch.batch_id))
    details: Details = {
        "completion": decision.completion,
        "contract": settings.model_dump(mode="json"),
        "counts": counts,
        "gaps": by_code,
        "facts": recorded,
        TOLD: told(recorded),
    }
    if recorded.get("readers", {}).get("previous"):
        details[PREVIOUS_OF] = previous_of(look.conn, batch)
    hashed = content_hash(settings.model_dump(mode="json")).hex()[:16]
    log.info("batch %s: completion %.4f, %s", batch.batch_id, decision.completion, counts)
    if decision.allowed:
        return Passed(details, hashed)
    return Refused(
        f"{'; '.join(decision.why)}; gaps by code: {by_code}. The view stays where it was",
        "Trigger a new run: accepted items are reused without a call and transient gaps are sent again. For the other "
        "gaps correct the input, the prompt or the output model, or allow in `gaps` of job.yaml what is not required. "
        "Clearing freeze_snapshot does the same in this run. They are listed by `python -m nightmill dead-letters "
        f"--batch {batch.batch_id} --count`.",
        details,
        hashed,
        ends=BatchState.PARTIAL_FAILED,
    )


def previous_of(conn: Connection, batch: Batch) -> list[int]:
    """The batches whose rows can stand in for gaps as previous ones; empty where readers see none in its place."""
    return sorted(one.batch_id for one in gaps.replaced(conn, batch))


GATE = Gate(GateName.COMPLETION, always, evaluate)

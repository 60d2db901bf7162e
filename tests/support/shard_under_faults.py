"""One shard of the pipeline's 20 documents, run to its end under a fault plan."""

from __future__ import annotations

from typing import Any

from nightmill.storage.batches import Batch
from support.forced import paid_as_forced
from support.pipeline import Pipeline
from support.steps import counts, one_shard, set_faults

ITEMS = 20
POLL = "GET /v1/batches/{batch_id}"
CONTENT = "GET /v1/files/{file_id}/content"


def driven(pipeline: Pipeline, **faults: Any) -> Batch:
    """One shard, run to its end under these faults."""
    set_faults(pipeline.simulator, **faults)
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    return batch


def all_accepted(pipeline: Pipeline, **faults: Any) -> Batch:
    """Every item accepted, and paid for no more often than the faults forced."""
    batch = driven(pipeline, **faults)
    assert counts(pipeline, batch) == {"accepted": ITEMS}
    paid_as_forced(pipeline.simulator, ITEMS)
    return batch


def odd(kind: str, match: str = "-[1-4]$", **more: Any) -> dict[str, Any]:
    return {"answer": {"kind": kind, "match": match, **more}}


def codes(pipeline: Pipeline) -> dict[tuple[str, str], int]:
    """(class, code) of the failed attempts, counted."""
    rows = pipeline.sql("select class, code, count(*) from nightmill.attempt where class is not null group by 1, 2")
    return {(kind, code): count for kind, code, count in rows}

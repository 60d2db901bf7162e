"""A job of several files under faults that make it wait: what left, what was paid, and when nothing may leave."""

from __future__ import annotations

import time
import urllib.request
from datetime import datetime, timedelta
from typing import Any

from nightmill.stages.run_shard import Waiting
from nightmill.storage.batches import Batch
from support.forced import paid_as_forced
from support.pipeline import Pipeline
from support.steps import batch_of, counts, set_faults

CREATE, UPLOAD = "POST /v1/batches", "POST /v1/files"
SECONDS = 400


def documents(pipeline: Pipeline, items: int, *, files: int = 4, keys: str = "") -> None:
    """A job over so many documents in about so many files; `keys` are further ones of its provider."""
    pipeline.sql("delete from documents")
    pipeline.documents([(f"doc-{n:05}", "1", f"tenant-{n % 3}", f"Text number {n}. Pages.") for n in range(items)])
    limits = f"poll_interval_s: 1\n  limits: {{requests_per_file: {max(items // files, 1)}}}{keys}"
    pipeline.edit("job.yaml", "poll_interval_s: 1", limits)
    if keys:
        pipeline.edit("job.yaml", "  results_grace_s: 0\n", "")


def calls(pipeline: Pipeline) -> dict[str, int]:
    """Calls that the provider has got, by route."""
    counted: dict[str, int] = pipeline.simulator.books(summary=True)["calls"]
    return counted


def all_accepted(pipeline: Pipeline, items: int, **faults: Any) -> Batch:
    """Run to the end under these faults: nothing lost, and paid as often as the faults forced."""
    set_faults(pipeline.simulator, **faults)
    batch = pipeline.freeze()
    pipeline.drive(pipeline.plan(batch), SECONDS)
    nothing_lost_and_paid_as_forced(pipeline, batch, items)
    return batch


def nothing_lost_and_paid_as_forced(pipeline: Pipeline, batch: Batch, items: int) -> None:
    assert counts(pipeline, batch) == {"accepted": items}
    paid_as_forced(pipeline.simulator, items)
    assert pipeline.sql("select count(*) from nightmill.dead_letter where batch_id = %s", batch.batch_id) == [(0,)]
    wrong = """select count(*) from nightmill.rows_notes
        where batch_id = %s and position('number ' || right(source_id, 5)::int || '.' in title) = 0"""
    assert pipeline.sql(wrong, batch.batch_id) == [(0,)]


def executed(pipeline: Pipeline) -> int:
    number: int = pipeline.simulator.books(summary=True)["executed"]
    return number


def wake_all(pipeline: Pipeline, shards: list[int]) -> list[Waiting]:
    """One wake-up of each shard; all of them still wait."""
    woken = [pipeline.wake(shard) for shard in shards]
    assert all(isinstance(one, Waiting) for one in woken), woken
    return woken  # type: ignore[return-value]


def account_limit(pipeline: Pipeline) -> tuple[int, float, datetime]:
    """(refusals in a row, the pause after the last one in seconds, when the next probe goes out)."""
    [row] = pipeline.sql(
        "select refusals, extract(epoch from next_at - refused_at)::float8, next_at from nightmill.account_limit"
    )
    return row  # type: ignore[return-value]


def cancel_in_the_console(pipeline: Pipeline, provider_id: str) -> None:
    """What somebody does who is not nightmill."""
    url = f"{pipeline.simulator.base_url}/batches/{provider_id}/cancel"
    urllib.request.urlopen(urllib.request.Request(url, b"", method="POST"), timeout=60).close()


def until_executed(pipeline: Pipeline, requests: int) -> None:
    until = time.monotonic() + 60
    while executed(pipeline) < requests:
        assert time.monotonic() < until
        time.sleep(0.05)


def later(pipeline: Pipeline, **by: float) -> None:
    pipeline.clock_offset += timedelta(**by)


def reason(pipeline: Pipeline, batch: Batch) -> str:
    return batch_of(pipeline, batch.batch_id).state_reason

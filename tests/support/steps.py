"""Steps and questions that several stage tests share."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from dev.practice_provider.server import RunningSimulator
from nightmill.domain.gates import GateName, Word
from nightmill.gates import compare, driver, registry
from nightmill.stages import publish, reconcile, report
from nightmill.stages.run_shard import Waiting
from nightmill.storage import batches, gates
from nightmill.storage.batches import Batch
from support.pipeline import Pipeline

ROOT = Path(__file__).parents[2]


def set_faults(simulator: RunningSimulator, **plan: Any) -> None:
    """Replace the simulator's fault plan."""
    request = urllib.request.Request(
        f"{simulator.control_url}/_faults", json.dumps(plan).encode(), {"content-type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=60).close()


def batch_of(pipeline: Pipeline, batch_id: int) -> Batch:
    """The batch as the ledger holds it now."""
    with pipeline.env.ledger() as conn:
        return batches.get(conn, batch_id)


def cancel(pipeline: Pipeline, batch_id: int) -> None:
    """What a cancel request does."""
    with pipeline.env.ledger() as conn:
        batches.cancel(conn, batch_id, "asked for")


def reconciled(pipeline: Pipeline, batch: Batch) -> None:
    """Reconcile and let the gates pass, without Great Expectations."""
    reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
    with pipeline.env.ledger() as conn:
        holder = batch_of(pipeline, batch.batch_id).holder
        gates.record(conn, holder, GateName.CHECK_STAGING, Word.PASSED, {}, "none")
    driver.run(pipeline.env, pipeline.live, batch.batch_id, compare.GATE)
    driver.run(pipeline.env, pipeline.live, batch.batch_id, registry.approval(0))


def publish_unchecked(pipeline: Pipeline, batch: Batch) -> report.Report:
    """Everything after run_shard, without Great Expectations."""
    reconciled(pipeline, batch)
    publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
    return report.run(pipeline.env, batch.batch_id)


def run_unchecked(pipeline: Pipeline, run_id: str = "run-1", **changes: Any) -> report.Report:
    """The whole job without Great Expectations."""
    batch = pipeline.freeze(run_id, **changes)
    pipeline.drive(pipeline.plan(batch))
    return publish_unchecked(pipeline, batch)


def one_shard(pipeline: Pipeline) -> tuple[Batch, int]:
    """A planned batch of one shard."""
    pipeline.edit("job.yaml", "shards: {count: 2}", "shards: {count: 1}")
    batch = pipeline.freeze()
    [shard] = pipeline.plan(batch)
    return batch, shard


def counts(pipeline: Pipeline, batch: Batch) -> dict[str, int]:
    """Items per bucket."""
    with pipeline.env.ledger() as conn:
        return batches.bucket_counts(conn, batch.batch_id)


def paid_once(pipeline: Pipeline, executed: int) -> None:
    """The provider's books: this many answers, none of them twice."""
    books = pipeline.simulator.books(summary=True)
    assert books["duplicates"] == []
    assert books["executed"] == executed


def provider_batches(pipeline: Pipeline) -> list[tuple[str, str, bool | None]]:
    """(state, reason, adopted) of all, oldest first."""
    return pipeline.sql("select state, state_reason, adopted from nightmill.provider_batch order by provider_batch_id")  # type: ignore[return-value]


def wake_until(pipeline: Pipeline, shard: int, state: str, seconds: float = 20) -> None:
    """Wake a shard until one of its provider batches is in a state."""
    until = time.monotonic() + seconds
    while state not in [row[0] for row in provider_batches(pipeline)]:
        assert time.monotonic() < until, provider_batches(pipeline)
        assert isinstance(pipeline.wake(shard), Waiting)
        time.sleep(0.05)


def half_done(pipeline: Pipeline) -> tuple[int, int]:
    """A batch whose only file the provider has executed to a half; (batch, shard)."""
    set_faults(pipeline.simulator, hold=True, hold_after=10)
    batch, shard = one_shard(pipeline)
    wake_until(pipeline, shard, "SUBMITTED")
    until = time.monotonic() + 120
    while pipeline.simulator.books(summary=True)["executed"] < 10:
        assert time.monotonic() < until
        time.sleep(0.05)
    return batch.batch_id, shard


class Worker:
    """A process of its own that runs one stage and stops at a point: kill it there, or pause and resume it."""

    def __init__(self, pipeline: Pipeline, action: str, argument: Any, point: str) -> None:
        settings = {"pipeline": pipeline.address, "action": action, "argument": argument, "point": point}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.worker", json.dumps(settings)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'include'}:{ROOT / 'tests'}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def kill_at_point(self) -> None:
        """Wait until the worker says that it is there, then kill it."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self._process.send_signal(signal.SIGKILL)
        code = self._process.wait(120)
        self._close()
        assert line.strip() == "reached", f"the worker ended with {code} before its point"

    def pause_at_point(self) -> None:
        """Wait until the worker says that it is there, then stop it as a frozen machine would."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == "reached"
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> str:
        """Let a paused worker go on to its end; what it said."""
        self._process.send_signal(signal.SIGCONT)
        said, _ = self._process.communicate("\n" * 100, timeout=120)
        self._close()
        return said

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

"""Takes a stage through a crash at any of its points, each time on a job of its own, and says how the job ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

from psycopg.conninfo import conninfo_to_dict

from dev.practice_provider.server import start_in_thread
from dev.practice_provider.settings import Settings
from dev.stack.postgres import Server
from support.crash_stories import STORIES
from support.pipeline import Pipeline
from support.pipeline_template import WRITER
from support.steps import ROOT, batch_of, counts

SPENT = """
select coalesce(sum(prompt), 0)::int, coalesce(sum(completion), 0)::int
from (
    select prompt_tokens, output_tokens from nightmill.attempt
    union all
    select unattributed_prompt_tokens, unattributed_output_tokens from nightmill.provider_batch_usage
) as spent (prompt, completion)
"""


@dataclass(frozen=True, slots=True)
class Ending:
    """What a job has come to: per run its state and its items by bucket; rows of the view; paid requests, tokens."""

    runs: tuple[tuple[str, str, dict[str, int]], ...]
    rows: int
    executed: int
    tokens: tuple[int, int]


class Starter:
    """A process that starts workers, one at a time. It lives as long as its `with` block."""

    def __enter__(self) -> Starter:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.crash_worker"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'include'}:{ROOT / 'tests'}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate(timeout=60)

    def run(
        self,
        pipeline: Pipeline,
        stage: str,
        argument: Any,
        *,
        target: tuple[str, str] | None = None,
        steps: int | None = None,
    ) -> tuple[list[str], int]:
        """The points that a worker came to, and its exit code: that of a killed one is negative.

        It is killed at `target`, a point and its moment, or after so many `steps`.
        """
        case = {
            "pipeline": pipeline.address,
            "stage": stage,
            "argument": argument,
            "target": target,
            "steps": steps,
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        points = []
        for line in self._process.stdout:
            kind, _, rest = line.rstrip("\n").partition(" ")
            if kind == "ended":
                return points, int(rest)
            points.append(rest)
        raise AssertionError("the process that starts the workers is gone")


class Sweep:
    """Copies of one job that has not run yet; each goes through a stage and then to its end."""

    def __init__(self, job: Pipeline, server: Server, folder: Path, starter: Starter) -> None:
        self._job = job
        self._server = server
        self._folder = folder
        self._starter = starter
        self._numbers = count(1)

    def points(self, stage: str) -> tuple[list[str], Ending]:
        """All points of a stage that nothing befalls, and how its job ends then."""
        return self._story(stage, None, 0)

    def crash(self, stage: str, point: str, moment: str) -> Ending:
        """How the job ends whose worker was killed `before` or `after` a point."""
        return self._story(stage, (point, moment), -signal.SIGKILL)[1]

    def _story(self, stage: str, target: tuple[str, str] | None, code: int) -> tuple[list[str], Ending]:
        story = STORIES[stage]
        with self._copy() as pipeline:
            argument = story.prepare(pipeline)
            points, ended = self._starter.run(pipeline, stage, argument, target=target)
            assert ended == code, f"the worker ended with {ended}, last seen at {points[-1:]}"
            story.go_on(pipeline, argument)
            return points, _ending(pipeline)

    @contextmanager
    def _copy(self) -> Iterator[Pipeline]:
        name = f"crash_{os.getpid()}_{next(self._numbers)}"
        folder = self._folder / name
        shutil.copytree(self._job.folder, folder / self._job.folder.name)
        self._server.create_database(
            name, template=str(conninfo_to_dict(self._job.admin_dsn)["dbname"]), copy_files=True
        )
        simulator = start_in_thread(Settings(data_dir=folder / "provider", batch_s=0, cancel_s=0.5))
        try:
            yield replace(
                self._job,
                admin_dsn=self._server.dsn(name),
                writer_dsn=self._server.dsn(name, WRITER),
                simulator=simulator,
                folder=folder / self._job.folder.name,
                store=folder / "objects",
            )
        finally:
            simulator.stop()
            self._server.drop_database(name)
            shutil.rmtree(folder)


def _ending(pipeline: Pipeline) -> Ending:
    """Raises AssertionError where an item is in no bucket, a request was paid for twice, or the costs are not what the
    provider's books say."""
    books = pipeline.simulator.books(summary=True)
    assert books["duplicates"] == [], f"paid for twice: {books['duplicates']}"
    [spent] = pipeline.sql(SPENT)
    paid = (books["usage"]["prompt_tokens"], books["usage"]["completion_tokens"])
    assert spent == paid, f"the ledger counts {spent} tokens, the provider {paid}"
    states = {state for (state,) in pipeline.sql("select distinct state from nightmill.provider_batch")}
    assert states <= {"COLLECTED", "ABANDONED"}, f"provider batches are left: {states}"
    runs = []
    for batch_id, run_id, state, planned in pipeline.sql(
        "select batch_id, run_id, state, item_count from nightmill.batch order by batch_id"
    ):
        buckets = counts(pipeline, batch_of(pipeline, batch_id))
        if state != "CANCELLED":
            settled = sum(buckets.values()) - buckets.get("unsettled", 0)
            assert settled == planned, f"{run_id}: {planned} items are planned, and these settled: {buckets}"
        runs.append((run_id, state, buckets))
    [(rows,)] = pipeline.sql("select count(*) from results.notes")
    return Ending(tuple(runs), rows, books["executed"], spent)  # type: ignore[arg-type]

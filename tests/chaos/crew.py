"""Worker processes that drive shards and are killed with SIGKILL at random times; another one goes on at once."""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing import forkserver
from pathlib import Path

from support.pipeline import Pipeline

from nightmill.domain.errors import Blocked, NightmillError
from nightmill.stages.run_shard import Finished

ROOT = Path(__file__).parents[2]
TICK_S = 0.02


class Crew:
    """Some workers that share the shards of a batch. A worker lives `life_s` seconds on average, counted from its
    start: some die before their first statement, some finish."""

    def __init__(self, pipeline: Pipeline, seed: int, workers: int, life_s: float) -> None:
        self._pipeline = replace(pipeline, simulator=None, base_url=pipeline.simulator.base_url)  # type: ignore[arg-type]
        self._random = random.Random(f"crew {seed}")
        self._workers = workers
        self._life_s = life_s
        self._context = multiprocessing.get_context("forkserver")
        self.kills = 0

    def drive(self, shards: Sequence[int], seconds: float, meanwhile: Callable[[], None]) -> None:
        """Until all shards are finished. `meanwhile` is called all the time.

        Raises AssertionError where a worker ends with a fault that a person would have to mend, or after `seconds`.
        """
        _start_fork_server()
        until = time.monotonic() + seconds
        parts = [list(shards[first :: self._workers]) for first in range(min(self._workers, len(shards)))]
        workers = [_Worker(self, part) for part in parts]
        try:
            while workers:
                assert time.monotonic() < until, f"the run did not end by itself in {seconds} s"
                meanwhile()
                workers = [one for one in workers if not one.look()]
                time.sleep(TICK_S)
        finally:
            for one in workers:
                one.end()  # a second time for those that were finished in the last round

    def start(self, shards: list[int]) -> tuple[multiprocessing.process.BaseProcess, float]:
        """A new worker and its time of death."""
        process = self._context.Process(target=work, args=(self._pipeline, shards), daemon=True)
        process.start()
        return process, time.monotonic() + self._random.expovariate(1 / self._life_s)


class _Worker:
    """The place of one worker: whoever holds it drives the same shards."""

    def __init__(self, crew: Crew, shards: list[int]) -> None:
        self._crew = crew
        self._shards = shards
        self._begin()

    def look(self) -> bool:
        """Whether the shards are finished. A worker whose time has come is killed and succeeded."""
        code = self._process.exitcode
        if code is not None:
            assert code == 0, f"the worker of shards {self._shards} ended with {code}; its reason stands above"
            self.end()
            return True
        if time.monotonic() >= self._dies_at:
            self.end()
            self._crew.kills += 1
            self._begin()
        return False

    def _begin(self) -> None:
        self._process, self._dies_at = self._crew.start(self._shards)
        self._ended = False

    def end(self) -> None:
        """Kill the process if it runs, and forget it."""
        if not self._ended:
            self._process.kill()
            self._process.join()
            self._process.close()
        self._ended = True


def _start_fork_server() -> None:
    """A fresh interpreter, which learns by environment only where modules are."""
    forkserver.set_forkserver_preload(["support.warm", "chaos.crew"])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{ROOT / 'include'}:{ROOT / 'tests'}"
    try:
        forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def work(pipeline: Pipeline, shards: list[int]) -> None:
    """Drive shards in turn as their tasks and triggers would. What needs a person ends the worker."""
    restarted, parent = dict.fromkeys(shards, True), multiprocessing.parent_process()
    assert parent is not None
    while restarted and parent.is_alive():
        for shard in tuple(restarted):
            try:
                finished = isinstance(pipeline.wake(shard, restarted=restarted[shard]), Finished)
            except Blocked:
                raise
            except NightmillError:  # Airflow tries the task again
                finished, restarted[shard] = False, True
                continue
            restarted[shard] = False
            if finished:
                del restarted[shard]
        time.sleep(0.05)

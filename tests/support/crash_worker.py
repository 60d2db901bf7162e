"""A process whose children run one stage each and kill themselves at a point, as a machine that fails would.

It imports everything once: a child costs a fork. One case per line of standard input; a child's points, then how it
ended, on standard output.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
import urllib.request
from collections.abc import Callable
from importlib import import_module
from itertools import count
from typing import Any, NoReturn

from nightmill.operations import cancel
from nightmill.stages import publish, reconcile
from nightmill.stages.run_shard import Finished, collect
from nightmill.storage import payloads
from nightmill.upkeep import wind_down
from support.crash_points import watch
from support.pipeline import Pipeline
from support.replays import take_over
from support.rolled_back import rolled_back
from support.steps import batch_of

OVER = ("completed", "failed", "expired", "cancelled")


def main() -> None:
    import_module("support.warm")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(json.loads(line))
        _, status = os.waitpid(child, 0)
        say(f"ended {os.waitstatus_to_exitcode(status)}")


def run(case: dict[str, Any]) -> NoReturn:
    """The stage of a case; never returns. Small chunks and segments: each is a point of its own.

    A worker is killed at its `target`, or once it is through `steps` points.
    """
    collect.CHUNK = 4  # type: ignore[misc]
    payloads.SEGMENT_BYTES = 2_000  # type: ignore[misc]
    target = tuple(case["target"]) if case["target"] else None
    through = count(1)
    pipeline = Pipeline.at(case["pipeline"])

    def on_point(name: str, moment: str) -> None:
        if moment == "before":
            say(f"point {name}")
        if (name, moment) == target or (moment == "after" and next(through) == case["steps"]):
            os.kill(os.getpid(), signal.SIGKILL)

    watch(on_point)
    try:
        STAGES[case["stage"]](pipeline, case["argument"])
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def drive(pipeline: Pipeline, shard: int) -> None:
    """Wake a shard to its end. The provider ends no batch while the shard is awake and every batch while it waits, so
    that each run takes the same steps."""
    restarted, finished = True, False
    while not finished:
        hold(pipeline, True)
        finished = isinstance(pipeline.wake(shard, restarted=restarted), Finished)
        hold(pipeline, False)
        wait_for_the_provider(pipeline)
        restarted = False


def wound_down(pipeline: Pipeline, _: Any) -> None:
    while pipeline.sql("select 1 from nightmill.provider_batch where state not in ('COLLECTED', 'ABANDONED')"):
        wind_down.run(pipeline.env, {})
        wait_for_the_provider(pipeline)


def hold(pipeline: Pipeline, on: bool) -> None:
    body, kind = json.dumps({"hold": on}).encode(), {"content-type": "application/json"}
    asked = urllib.request.Request(f"{control_url(pipeline)}/_faults", body, kind, method="PATCH")
    urllib.request.urlopen(asked, timeout=60).close()


def wait_for_the_provider(pipeline: Pipeline) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with urllib.request.urlopen(f"{control_url(pipeline)}/_books?summary=1", timeout=60) as answer:
            if all(one["status"] in OVER for one in json.load(answer)["batches"]):
                return
        time.sleep(0.02)
    raise TimeoutError("the provider does not end its batches")


def control_url(pipeline: Pipeline) -> str:
    return (pipeline.base_url or pipeline.simulator.base_url).removesuffix("/v1")


STAGES: dict[str, Callable[[Pipeline, Any], Any]] = {
    "freeze": lambda pipeline, run_id: pipeline.freeze(run_id),
    "plan": lambda pipeline, batch_id: pipeline.plan(batch_of(pipeline, batch_id)),
    "run_shard": drive,
    "wakes": lambda pipeline, shard: pipeline.drive([shard]),
    "reconcile": lambda pipeline, batch_id: reconcile.run(pipeline.env, pipeline.live, batch_id),
    "publish": lambda pipeline, batch_id: publish.run(pipeline.env, pipeline.live, batch_id, "tester"),
    "cancel": lambda pipeline, batch_id: cancel.run(pipeline.env, cancel.Target(batch_id), "not needed"),
    "wind_down": wound_down,
    "replay": take_over,
    "rollback": rolled_back,
}

if __name__ == "__main__":
    main()

"""A worker process that stops at a named point of a stage, to be killed there."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

from nightmill.domain.errors import NightmillError
from nightmill.providers.openai.transport import OpenAIBatches
from nightmill.stages.run_shard import Finished, collect
from nightmill.storage import items
from nightmill.upkeep import wind_down
from support.pipeline import Pipeline


def main() -> None:
    settings = json.loads(sys.argv[1])
    pipeline = Pipeline.at(settings["pipeline"])
    POINTS[settings["point"]]()
    try:
        work(pipeline, settings["action"], settings["argument"])
    except NightmillError as fault:
        sys.stdout.write(f"{type(fault).__name__}: {fault}\n")


def work(pipeline: Pipeline, action: str, argument: Any) -> None:
    if action == "freeze":
        pipeline.freeze(argument)
    elif action == "wind_down":
        for _ in range(200):
            wind_down.run(pipeline.env, {})
            time.sleep(0.05)
    else:
        for _ in range(200):
            if isinstance(pipeline.wake(argument), Finished):
                return
            time.sleep(0.05)


def reached(*_: Any, **__: Any) -> NoReturn:
    """Say so and wait for the end."""
    sys.stdout.write("reached\n")
    sys.stdout.flush()
    time.sleep(600)
    raise SystemExit("nobody killed this worker")


def wait_here() -> None:
    """Say so and go on when told to: for a worker that is paused, not killed."""
    sys.stdout.write("reached\n")
    sys.stdout.flush()
    sys.stdin.readline()


def between_intent_and_upload() -> None:
    OpenAIBatches.stage_input = reached  # type: ignore[method-assign]


def between_upload_and_create() -> None:
    OpenAIBatches.create = reached  # type: ignore[method-assign]


def between_create_and_record() -> None:
    real = OpenAIBatches.create

    def submit(*arguments: Any) -> NoReturn:
        real(*arguments)
        reached()

    OpenAIBatches.create = submit  # type: ignore[method-assign]


def in_mid_ingest() -> None:
    """After the first chunk of results was committed."""
    real = collect._settle
    collect.CHUNK = 3  # type: ignore[misc]

    def settle(*arguments: Any) -> NoReturn:
        real(*arguments)
        reached()

    collect._settle = settle  # type: ignore[assignment]


def before_a_chunk() -> None:
    """The results are downloaded and checked, and about to be written."""
    real = collect._settle

    def settle(*arguments: Any) -> Any:
        wait_here()
        return real(*arguments)

    collect._settle = settle


def right_before_create() -> None:
    """The fence was rechecked; the create call is about to leave."""
    real = OpenAIBatches.create

    def submit(*arguments: Any) -> Any:
        wait_here()
        return real(*arguments)

    OpenAIBatches.create = submit  # type: ignore[method-assign]


def in_mid_copy() -> None:
    """After some rows of the manifest went to the server."""
    real = items.copy_in

    def copy_in(conn: Any, table: Any, batch_id: int, rows: Any) -> int:
        def some() -> Any:
            for number, row in enumerate(rows):
                if number == 7:
                    reached()
                yield row

        return real(conn, table, batch_id, some())

    items.copy_in = copy_in


POINTS: dict[str, Callable[[], None]] = {
    function.__name__: function
    for function in (
        between_intent_and_upload,
        between_upload_and_create,
        between_create_and_record,
        in_mid_ingest,
        before_a_chunk,
        right_before_create,
        in_mid_copy,
    )
}

if __name__ == "__main__":
    main()

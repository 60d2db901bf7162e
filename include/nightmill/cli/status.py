"""status: batches as text or JSON, once or as a live view."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any, TextIO

from nightmill.operations import status
from nightmill.operations.status import Standing, block, line
from nightmill.services.connections import environment_of
from nightmill.services.environment import Environment, utc_now
from nightmill.stages import report

INTERVAL_S = 2.0
REST = 4  # a look that takes long is followed by a pause of this many times its length: the ledger has other work
_HOME, _REST_OF_LINE, _REST_OF_SCREEN, _CLEAR = "\x1b[H", "\x1b[K", "\x1b[J", "\x1b[2J"


def run(arguments: argparse.Namespace) -> int:
    """Print where batches stand; with --watch until the batch is at rest, until only a person can help, or Ctrl-C."""
    env = environment_of(os.environ)
    if arguments.watch:
        return watch(env, arguments.batch, arguments.job, as_json=arguments.json, out=sys.stdout)
    standings = status.look(env, arguments.batch, arguments.job)
    if arguments.json:
        print(json.dumps([fields(one) for one in standings]))
        return 0
    print("\n\n".join("\n".join(block(one)) for one in standings) or "no batches")
    if arguments.batch is not None and standings[0].batch.at_rest:
        print("\n" + report.render(report.build(env, arguments.batch)))
    return 0


def watch(
    env: Environment,
    batch_id: int | None,
    job: str | None = None,
    *,
    as_json: bool,
    out: TextIO,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Look again and again. On a terminal one screen is drawn anew; elsewhere each change is a line of its own.

    Returns 1 once nothing goes on by itself, because freezing failed; 0 where the batch comes to rest, or on Ctrl-C.
    """
    drawn = out.isatty() and not as_json
    said: dict[int, str] = {}
    if drawn:
        out.write(_CLEAR)
    try:
        while True:
            began = time.monotonic()
            standings = status.look(env, batch_id, job)
            if drawn:
                out.write(screen(standings, shutil.get_terminal_size()))
            else:
                _say_changes(standings, said, as_json, out)
            out.flush()
            if batch_id is not None and standings[0].batch.at_rest:
                return 0
            still = [one for one in standings if not one.batch.at_rest]
            if still and all(one.batch.freezing_failed for one in still):
                if drawn:  # a screen cuts long lines
                    out.writelines(f"{line(one)}\n" for one in still)
                return 1
            pause(max(INTERVAL_S, REST * (time.monotonic() - began)))
    except KeyboardInterrupt:
        return 0


def screen(standings: list[Standing], size: os.terminal_size) -> str:
    """What is written to the terminal: from its upper left corner, no wider and no higher than it is."""
    lines = [f"{utc_now():%Y-%m-%d %H:%M:%S} UTC, Ctrl-C ends the view", ""]
    for one in standings:
        lines += [*block(one), ""]
    shown = [line[: size.columns - 1] for line in lines[: size.lines - 1]]
    return _HOME + "".join(f"{line}{_REST_OF_LINE}\n" for line in shown) + _REST_OF_SCREEN


def _say_changes(standings: list[Standing], said: dict[int, str], as_json: bool, out: TextIO) -> None:
    for one in standings:
        facts = fields(one)
        now = json.dumps(facts | {"seconds_left": None})  # the time left alone is no change
        if said.get(one.batch.batch_id) != now:
            said[one.batch.batch_id] = now
            out.write((json.dumps(facts) if as_json else line(one)) + "\n")


def fields(one: Standing) -> dict[str, Any]:
    """One batch as JSON; money as text."""
    batch = one.batch
    return {
        "job": batch.job,
        "batch_id": batch.batch_id,
        "run_id": batch.run_id,
        "state": str(batch.state),
        "reason": batch.state_reason,
        "items": batch.item_count,
        "buckets": one.buckets,
        "shards": [asdict(shard) | {"wake_at": _iso(shard.wake_at)} for shard in one.progress.shards],
        "provider_batches": [asdict(sent) for sent in one.progress.provider_batches],
        "attempts": [asdict(kind) for kind in one.progress.attempts],
        "gates": dict(one.gates),
        "gap_facts": one.gap_facts,
        "prompt_tokens": one.spent.prompt,
        "completion_tokens": one.spent.completion,
        "cached_tokens": one.spent.cached,
        "cache_write_tokens": one.spent.cache_written,
        "reasoning_tokens": one.spent.reasoning,
        "odd_usage": {"requests": one.spent.odd, "provider_batches": one.spent.odd_reports},
        "cost": str(one.cost) if one.cost is not None else None,
        "seconds_left": one.seconds_left,
        "alerts": one.alerts,
    }


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None

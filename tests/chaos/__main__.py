"""`make chaos`: one run under all faults at once, with killed workers. The last line is its account as JSON.

Ends with 1 where an item was lost, executed again without need, or something else does not add up.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time

from starlette.requests import ClientDisconnect

from chaos.accounts import faults_met
from chaos.run import chaos, prepare
from chaos.site import site

LONGEST_S = 3600
MOST_SHOWN = 30


def main() -> int:
    items, seed = int(os.environ.get("CHAOS_ITEMS") or 5_000), int(os.environ.get("CHAOS_SEED") or 1)
    life_s, strike_s = float(os.environ.get("CHAOS_LIFE_S") or 2), float(os.environ.get("CHAOS_STRIKE_S") or 1.5)
    logging.getLogger("uvicorn.error").addFilter(_not_of_a_killed_worker)
    _say(f"{items} items, seed {seed}, a worker lives {life_s:g} s, a strike every {strike_s:g} s")
    with site() as pipeline:
        prepare(pipeline, items)
        started = time.monotonic()
        account = chaos(pipeline, seed, seconds=LONGEST_S, life_s=life_s, strike_s=strike_s)
        _say(f"ended by itself after {time.monotonic() - started:.0f} s")
        for fault, times in sorted(faults_met(pipeline).items()):
            _say(f"{times:6} x {fault}")
    for line in account.wrong[:MOST_SHOWN]:
        _say(f"WRONG: {line}")
    if len(account.wrong) > MOST_SHOWN:
        _say(f"WRONG: and {len(account.wrong) - MOST_SHOWN} more")
    _say(json.dumps(account.figures))
    return 1 if account.wrong else 0


def _not_of_a_killed_worker(record: logging.LogRecord) -> bool:
    """Whoever is killed in the middle of a request leaves a traceback in the provider's log: expected here."""
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

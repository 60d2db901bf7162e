"""One stage or floor in a process of its own: `python -m dev.bench.worker NAME SITE.json` prints its figures as JSON.

A process of its own makes CPU time and peak memory those of the stage. Interpreter start and imports are reported
apart; the CPU time of the database server is the difference of what its processes used.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dev.bench.site import Site


def main(name: str, settings: str) -> None:
    """Run one named piece of work and print what it cost."""
    values = json.loads(settings)
    site = Site(**{**values, "home": Path(values["home"])})
    module, function = name.rsplit(".", 1)
    work: Callable[[Site], Any] = getattr(importlib.import_module(f"dev.bench.{module}"), function)
    prepared = work(site)
    with site.environment.provider(site.job):
        pass  # the provider's SDK and the object store's driver are imported at their first use
    started = {"start_cpu_s": time.process_time()}
    server, cpu, wall = site.server_cpu_s(), time.process_time(), time.perf_counter()
    result = prepared()
    wall = time.perf_counter() - wall
    cpu = time.process_time() - cpu
    time.sleep(0.5)  # the server learns of an ended session's CPU time only now
    figures = {
        "wall_s": wall,
        "cpu_s": cpu,
        "server_cpu_s": site.server_cpu_s() - server,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "result": result,
    }
    print(json.dumps(started | figures))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

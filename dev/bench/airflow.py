"""`make bench-airflow`: a run's wall against its number of shards on a real local Airflow, beside the same stages
called without it. SHARDS=4,16 runs some numbers of shards, DOCUMENTS=64 takes fewer documents.

The documents are contracts, the provider answers at once, so what is measured is the way there and back. A shard whose
batch has ended when its task looks once more, right after sending, does not defer. With BATCH_SECONDS=2 every shard
defers, as with every real provider: two task starts a shard, and at least ten seconds between them. Writes its part of
dev/bench/latest.json (`airflow`, or `airflow_deferring` with BATCH_SECONDS) and prints a table.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from typing import Any

from bench.__main__ import LATEST, STAGES

from dev.bench.airflow_site import AirflowSite, airflow_site
from dev.bench.contracts import documents
from dev.bench.shares import InProcess, figures, per_shard, table
from dev.bench.site import Site
from dev.bench.stages import ended_batches, open_shards, wait_for_provider

SHARDS = (4, 16, 64, 256)
DOCUMENTS = 512
IDLE_S = 20.0


def main() -> int:
    """Measure all numbers of shards."""
    wanted = [int(part) for part in os.environ.get("SHARDS", "").split(",") if part] or list(SHARDS)
    count = int(os.environ.get("DOCUMENTS") or DOCUMENTS)
    if max(wanted) > count:
        print(f"{count} documents cannot be cut into {max(wanted)} shards: set DOCUMENTS higher.", file=sys.stderr)
        return 1
    batch_s = float(os.environ.get("BATCH_SECONDS") or 0)
    texts = documents(count)
    about = {"documents": count, "characters": sum(map(len, texts)), "batch_s": batch_s}
    curve: dict[int, dict[str, Any]] = {}
    with airflow_site(texts, wanted, batch_s) as here:
        about["idle_cpu_s_per_min"] = _warm_up(here, wanted[0])
        for shards in wanted:
            curve[shards] = _point(here, shards)
            _write(curve, about)
    print(table(curve))
    print(
        f"one more shard: {per_shard(curve, 'wall_s'):.2f} s of wall, {per_shard(curve, 'cpu_s'):.2f} CPU s of Airflow"
    )
    print(f"written to {LATEST}")
    return 0


def _write(curve: dict[int, dict[str, Any]], about: dict[str, float]) -> None:
    """Merge what is known so far into the latest figures: a long curve that is interrupted keeps its points."""
    part = about | {
        "wall_s_per_shard": round(per_shard(curve, "wall_s"), 2),
        "cpu_s_per_shard": round(per_shard(curve, "cpu_s"), 2),
        "shards": {str(shards): one for shards, one in curve.items()},
    }
    kept = json.loads(LATEST.read_text()) if LATEST.exists() else {}
    name = "airflow_deferring" if about["batch_s"] else "airflow"
    LATEST.write_text(json.dumps(kept | {name: part}, indent=2) + "\n")


def _warm_up(here: AirflowSite, shards: int) -> float:
    """A dry run, so that the first measured run pays no more than the others. Returns what Airflow costs while it
    has nothing to do, in CPU seconds per minute."""
    here.warm_up(shards, timeout_s=300)
    cpu = here.cpu_s()
    time.sleep(IDLE_S)
    idle = round((here.cpu_s() - cpu) / IDLE_S * 60, 1)
    print(f"Airflow is up; idle it takes {idle} CPU s a minute", flush=True)
    return idle


def _point(here: AirflowSite, shards: int) -> dict[str, Any]:
    """One number of shards: the stages without Airflow, then a run. The load tells who else used the machine."""
    busy = os.getloadavg()[0]
    floor = _in_process(here.in_process(shards))
    print(f"{shards} shards: {floor}", flush=True)
    run = here.run(shards, timeout_s=600 + 15 * shards)
    print(f"{shards} shards: {run}", flush=True)
    return figures(run, floor) | {"load_before": round(busy, 1), "load_after": round(os.getloadavg()[0], 1)}


def _in_process(site: Site) -> InProcess:
    wall = cpu = waited = 0.0
    ended = ended_batches(site)
    for stage in STAGES:
        if stage == "collect":
            began = time.monotonic()
            wait_for_provider(site, ended + len(open_shards(site)))
            waited = time.monotonic() - began
        raw = _measured(site, stage)
        wall += raw["wall_s"]
        cpu += raw["cpu_s"]
    return InProcess(wall, cpu, waited)


def _measured(site: Site, stage: str) -> dict[str, Any]:
    settings = json.dumps({**asdict(site), "home": str(site.home)})
    command = [sys.executable, "-m", "dev.bench.worker", f"stages.{stage}", settings]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    sys.exit(main())

"""`make bench`: cost per item of every stage beside its floor, at 10k, 100k and 1M items. SIZES=10000 runs one size.

Three nights: everything is new, everything is reused, and 1 of 100 documents changed.

Writes dev/bench/latest.json and prints a table. Speed claims are ratios to a floor measured in the same run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dev.bench import readers
from dev.bench.floors import MOST_LINES
from dev.bench.site import Site, change_documents, site
from dev.bench.stages import check_staging, ended_batches, open_shards, wait_for_provider

SIZES = (10_000, 100_000, 1_000_000)
STAGES = ("freeze", "plan", "preflight", "submit", "collect", "reconcile", "check_staging", "publish", "report")
NEXT_NIGHT = ("freeze_again", "plan", "preflight", "reconcile", "publish", "report")
CHANGED_NIGHT = ("freeze_again", "plan", "preflight", "submit", "collect", "reconcile", "publish", "report")
FLOORS = {"freeze": "count_tokens", "submit": "copy_out", "collect": "copy_in"}
LATEST = Path(__file__).parent / "latest.json"


def main() -> int:
    """Run all sizes."""
    sizes = [int(part) for part in os.environ.get("SIZES", "").split(",") if part] or list(SIZES)
    stages: dict[str, dict[str, Any]] = {}
    end_to_end: dict[str, Any] = {}
    publish_ms: dict[str, float] = {}
    reading: dict[str, dict[str, float]] = {}
    for items in sizes:
        with site(items) as here:
            figures = _nights(here, items)
            reading[str(items)] = readers.compare(here, items)
            script = _measured(here, "floors.plain_script", min(items, MOST_LINES))["cpu_s_per_10k"]
        for name, one in figures.items():
            kept = stages.setdefault(name, {"peak_mb": {}})
            kept["peak_mb"][str(items)] = round(one["peak_mb"])
            kept.update({key: value for key, value in one.items() if key != "peak_mb"})
        publish_ms[str(items)] = round(figures["publish"]["wall_s"] * 1000, 1)
        total = sum(figures[name]["cpu_s_per_10k"] for name in STAGES if name != "check_staging")
        end_to_end[str(items)] = {
            "cpu_s_per_10k": round(total, 3),
            "plain_script_cpu_s_per_10k": script,
            "times_a_plain_script": round(total / script, 2),
            "freeze_and_plan_share_of_counting": _share(figures, "freeze", "plan"),
            "counting_alone_with_our_counter_cpu_s_per_10k": figures["freeze"]["own_counting_cpu_s_per_10k"],
            "all_reused_beyond_freeze_cpu_s_per_10k": _beyond_freeze(figures, "next_night", NEXT_NIGHT),
            "99_percent_reused_beyond_freeze_cpu_s_per_10k": _beyond_freeze(figures, "changed_night", CHANGED_NIGHT),
        }
        print(f"{items} items: {end_to_end[str(items)]}, readers: {reading[str(items)]}", flush=True)
    kept_parts = json.loads(LATEST.read_text()) if LATEST.exists() else {}
    found = {"stages": stages, "end_to_end": end_to_end, "publish_ms": publish_ms, "readers": reading}
    LATEST.write_text(json.dumps(kept_parts | found, indent=2) + "\n")
    print(f"written to {LATEST}")
    return 0


def _beyond_freeze(figures: dict[str, dict[str, Any]], night: str, stages: tuple[str, ...]) -> float:
    return round(sum(figures[f"{night}.{name}"]["cpu_s_per_10k"] for name in stages if name != "freeze_again"), 4)


def _share(figures: dict[str, dict[str, Any]], *stages: str) -> float:
    """Of the floor of the first stage in the CPU time of all of them."""
    floor = figures[stages[0]]["share_of_floor"] * figures[stages[0]]["cpu_s_per_10k"]
    return round(floor / sum(figures[name]["cpu_s_per_10k"] for name in stages), 3)


def _nights(here: Site, items: int) -> dict[str, dict[str, Any]]:
    """One full run, the next night's, on which everything is reused, and one after 1 of 100 documents changed."""
    figures = {}
    for name in STAGES:
        if name == "collect":
            wait_for_provider(here, len(open_shards(here)))
        figures[name] = _measured(here, f"stages.{name}", items)
        if name in FLOORS:
            floor_items = min(items, MOST_LINES) if name == "collect" else items
            floor = _measured(here, f"floors.{FLOORS[name]}", floor_items)
            figures[name]["floor_items_per_s"] = floor["items_per_s"]
            figures[name]["share_of_floor"] = round(
                floor["cpu_s_per_10k"] / max(figures[name]["cpu_s_per_10k"], 1e-9), 3
            )
        if name == "freeze":
            own = _measured(here, "floors.count_tokens_ourselves", items)
            figures[name]["own_counting_cpu_s_per_10k"] = own["cpu_s_per_10k"]
        _say(name, figures[name])
    figures |= _later_night(here, items, "next_night", NEXT_NIGHT)
    change_documents(here, one_of=100)
    return figures | _later_night(here, items, "changed_night", CHANGED_NIGHT)


def _later_night(here: Site, items: int, night: str, stages: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Figures per 10k items of the whole batch, whatever share of it a stage has to do with."""
    figures = {}
    ended = ended_batches(here)
    for stage in stages:
        if stage == "collect":
            wait_for_provider(here, ended + len(open_shards(here)))
        name = f"{night}.{stage}"
        figures[name] = _measured(here, f"stages.{stage}", items)
        if stage == "reconcile":
            check_staging(here)()
        _say(name, figures[name])
    return figures


def _measured(here: Site, work: str, items: int) -> dict[str, Any]:
    settings = json.dumps({**asdict(here), "home": str(here.home)})
    done = subprocess.run(
        [sys.executable, "-m", "dev.bench.worker", work, settings], check=True, stdout=subprocess.PIPE, text=True
    )
    raw = json.loads(done.stdout.splitlines()[-1])
    cpu = raw["cpu_s"] + raw["server_cpu_s"]
    return {
        "cpu_s_per_10k": round(cpu / items * 10_000, 4),
        "server_share": round(raw["server_cpu_s"] / cpu, 2) if cpu else 0,
        "items_per_s": round(items / max(raw["wall_s"], 1e-9)),
        "wall_s": round(raw["wall_s"], 3),
        "start_cpu_s": round(raw["start_cpu_s"], 2),
        "peak_mb": raw["peak_mb"],
    }


def _say(name: str, one: dict[str, Any]) -> None:
    floor = f", floor {one['floor_items_per_s']}/s" if "floor_items_per_s" in one else ""
    print(
        f"  {name:24}{one['cpu_s_per_10k']:9.4f} CPU s/10k ({one['server_share']:.0%} server) "
        f"{one['items_per_s']:>9}/s {one['peak_mb']:6.0f} MB{floor}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())

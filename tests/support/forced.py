"""What happened at the local provider, held against what its fault log forced: item by item."""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from typing import Any

from dev.practice_provider.server import RunningSimulator


def fault_log(simulator: RunningSimulator, fault: str | None = None) -> list[dict[str, Any]]:
    """The details of all injected faults of a name, oldest first; with their names where none is given."""
    with urllib.request.urlopen(f"{simulator.control_url}/_faults/log", timeout=60) as answer:
        entries = json.load(answer)["data"]
    return [one["detail"] | {"fault": one["fault"]} for one in entries if fault is None or one["fault"] == fault]


def forced_executions(simulator: RunningSimulator) -> Counter[int]:
    """Item -> how many of its executions were paid for and spoilt, so that it had to be asked again."""
    spoilt = [one for one in fault_log(simulator) if one.get("executed") and one.get("spoilt")]
    return Counter(_ordinal(one["custom_id"]) for one in spoilt)


def executions(simulator: RunningSimulator) -> Counter[int]:
    """Item -> how often it was executed and paid for. One batch per simulator, else items are mixed up."""
    requests = simulator.books()["requests"]
    counts: Counter[int] = Counter()
    for custom_id, entry in requests.items():
        counts[_ordinal(custom_id)] += entry["count"]
    return counts


def paid_as_forced(simulator: RunningSimulator, items: int) -> None:
    """Every item was executed once, and once more for each answer that a fault spoilt: no more and no less."""
    forced = forced_executions(simulator)
    assert executions(simulator) == Counter({ordinal: 1 + forced[ordinal] for ordinal in range(items)})


def _ordinal(custom_id: str) -> int:
    return int(custom_id.rpartition("-")[2])

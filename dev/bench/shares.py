"""The arithmetic of the shard curve: whose seconds a run's wall are, and what another shard costs. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

WAITING = ("scheduled", "queued")


class StateClock:
    """Seconds that the tasks of a run spent in each state, all tasks together, added up from counts read now and
    then. Airflow itself keeps only the first start and the last end of a task that deferred in between."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._at: float | None = None
        self._counts: Mapping[str, int] = {}

    def read(self, at: float, counts: Mapping[str, int]) -> None:
        """`counts` are the tasks by state at `at` (seconds). Until the next reading they are taken as unchanged."""
        if self._at is not None:
            for state, count in self._counts.items():
                self.seconds[state] += count * (at - self._at)
        self._at, self._counts = at, counts


@dataclass(frozen=True, slots=True)
class InProcess:
    """The stages of a run called one after another without Airflow; durations in seconds. Interpreter starts and
    imports are not in it: with Airflow they are paid once a task. `stages_cpu_s` is without the database server's."""

    stages_s: float
    stages_cpu_s: float
    provider_wait_s: float


@dataclass(frozen=True, slots=True)
class AirflowRun:
    """A run on Airflow; durations in seconds. `wall_s` is from queued to end, `mapped_s` from the first start to the
    last end of a shard's task; `task_s`, `waiting_s` and `deferred_s` are sums over all tasks; `provider_s` is how
    long at least one provider batch was out, as the ledger saw it; `cpu_s` is of all processes of Airflow, tasks
    included."""

    shards: int
    wall_s: float
    mapped_s: float
    task_s: float
    waiting_s: float
    deferred_s: float
    provider_s: float
    cpu_s: float

    @property
    def mapped_per_min(self) -> float:
        """Shards done per minute while shards were worked on."""
        return self.shards / self.mapped_s * 60


def airflow_share(run: AirflowRun, floor: InProcess) -> float:
    """The fraction of the wall that neither a stage nor the provider needed. Negative if side by side the tasks were
    faster than the stages one after another."""
    return (run.wall_s - floor.stages_s - floor.provider_wait_s) / run.wall_s


def airflow_cpu_share(run: AirflowRun, floor: InProcess) -> float:
    """The fraction of the CPU time of Airflow's processes that no stage needed. It varies less than the wall with
    what else the machine does."""
    return (run.cpu_s - floor.stages_cpu_s) / run.cpu_s


def figures(run: AirflowRun, floor: InProcess) -> dict[str, Any]:
    """What is kept of one number of shards."""
    values = {name: value for name, value in (asdict(run) | asdict(floor)).items() if name != "shards"}
    return {name: round(value, 2) for name, value in values.items()} | {
        "mapped_per_min": round(run.mapped_per_min, 1),
        "airflow_share": round(airflow_share(run, floor), 3),
        "airflow_cpu_share": round(airflow_cpu_share(run, floor), 3),
    }


def per_shard(curve: Mapping[int, Mapping[str, float]], name: str) -> float:
    """What one more shard adds to a figure: the slope of the least-squares line. 0 for a single point."""
    mean_x = sum(curve) / len(curve)
    mean_y = sum(one[name] for one in curve.values()) / len(curve)
    spread = sum((shards - mean_x) ** 2 for shards in curve)
    return sum((shards - mean_x) * (one[name] - mean_y) for shards, one in curve.items()) / spread if spread else 0.0


def mapped_seconds(instances: Sequence[Mapping[str, Any]]) -> float:
    """From the first start to the last end of the mapped instances, as the REST API lists them."""
    mapped = [one for one in instances if one["map_index"] >= 0]
    started = min(datetime.fromisoformat(one["start_date"]) for one in mapped)
    return (max(datetime.fromisoformat(one["end_date"]) for one in mapped) - started).total_seconds()


def table(curve: Mapping[int, Mapping[str, float]]) -> str:
    """One line per number of shards."""
    columns = {
        "wall_s": "wall s",
        "stages_s": "stages s",
        "airflow_share": "Airflow's share",
        "task_s": "in tasks s",
        "waiting_s": "queued s",
        "deferred_s": "deferred s",
        "cpu_s": "CPU s",
        "airflow_cpu_share": "its share",
        "mapped_per_min": "shards/min",
    }
    lines = ["  ".join(["shards", *columns.values()])]
    for shards, one in sorted(curve.items()):
        cells = [f"{one[name]:.0%}" if name.endswith("share") else f"{one[name]:.1f}" for name in columns]
        padded = [cell.rjust(len(title)) for cell, title in zip(cells, columns.values(), strict=True)]
        lines.append("  ".join([str(shards).rjust(len("shards")), *padded]))
    return "\n".join(lines)

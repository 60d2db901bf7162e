"""What the demo, benchmarks and tests ask of a running Airflow, beyond what nightmill's own commands need."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from nightmill.domain.errors import ConfigError, Transient
from nightmill.services.airflow_rest import PAGE, AirflowClient, Json

TERMINAL_RUN_STATES = frozenset({"success", "failed"})


class StackClient(AirflowClient):
    """Airflow as a person uses it: waits for runs, clears and marks tasks, reads logs."""

    def find_dag(self, dag_id: str) -> Json | None:
        """The same, None until then."""
        return self._found(f"/api/v2/dags/{dag_id}")

    def wait_for_dag(self, dag_id: str, timeout_s: float = 90.0) -> Json:
        """Wait until the DAG is parsed. Raises ConfigError naming the import errors when it does not appear."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if found := self.find_dag(dag_id):
                return found
            time.sleep(1)
        errors = [f"{error['filename']}: {error['stack_trace']}" for error in self.import_errors()]
        raise ConfigError(
            f"Airflow did not find the DAG {dag_id} within {timeout_s:.0f} s. Import errors: {errors or 'none'}.",
            "see the dag-processor's log.",
        )

    def unpause(self, dag_id: str) -> None:
        """Let the scheduler run the DAG."""
        self._send("PATCH", f"/api/v2/dags/{dag_id}", json={"is_paused": False})

    def pause(self, dag_id: str) -> None:
        """Let the scheduler start nothing of the DAG; what runs ends its tasks."""
        self._send("PATCH", f"/api/v2/dags/{dag_id}", json={"is_paused": True})

    def backfill(self, dag_id: str, logical_date: str) -> None:
        """Run one interval of the DAG, again where it has a run, as a person does in the UI."""
        body = {"dag_id": dag_id, "from_date": logical_date, "to_date": logical_date, "max_active_runs": 1}
        self._send("POST", "/api/v2/backfills", json=body | {"reprocess_behavior": "completed"})

    def dag_run(self, dag_id: str, run_id: str) -> Json:
        """The run with its state."""
        return self._send("GET", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")

    def dag_runs(self, dag_id: str) -> list[Json]:
        """The runs of a DAG, the newest first, at most a page."""
        path = f"/api/v2/dags/{dag_id}/dagRuns"
        return list(self._send("GET", path, params={"limit": PAGE, "order_by": "-run_after"})["dag_runs"])

    def set_run_state(self, dag_id: str, run_id: str, state: str) -> Json:
        """Mark a run success, failed or queued, as a person does in the UI."""
        return self._send("PATCH", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}", json={"state": state})

    def wait_for_run(self, dag_id: str, run_id: str, timeout_s: float, interval_s: float = 1.0) -> str:
        """Wait until the run has ended and return its state. Raises Transient after `timeout_s` seconds.

        On a busy machine the api-server can take longer for an answer than a call waits: the next one asks again.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            with suppress(Transient):
                state = str(self.dag_run(dag_id, run_id)["state"])
                if state in TERMINAL_RUN_STATES:
                    return state
            time.sleep(interval_s)
        raise Transient(f"Run {run_id} of {dag_id} did not end within {timeout_s:.0f} s.", "look at it in the UI.")

    def task_instances(self, dag_id: str, run_id: str) -> list[Json]:
        """All task instances of a run, mapped ones expanded."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances"
        found: list[Json] = []
        while True:
            page = self._send("GET", path, params={"limit": PAGE, "offset": len(found), "order_by": "id"})
            found += page["task_instances"]
            if len(found) >= page["total_entries"] or not page["task_instances"]:
                return found

    def clear(
        self, dag_id: str, run_id: str, tasks: Sequence[str | tuple[str, int]], downstream: bool = False
    ) -> list[Json]:
        """Clear tasks of a run in any state; `("run_shard", 3)` names one mapped instance. Returns what was cleared."""
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": [list(task) if isinstance(task, tuple) else task for task in tasks],
            "only_failed": False,
            "include_downstream": downstream,
            "reset_dag_runs": True,
        }
        return list(self._send("POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", json=body)["task_instances"])

    def set_task_state(self, dag_id: str, run_id: str, task_id: str, state: str, map_index: int = -1) -> Json:
        """Mark one task instance success, failed or skipped, as a person does in the UI."""
        body = {"new_state": state, "include_downstream": False}
        return self._send("PATCH", self._task_path(dag_id, run_id, task_id, map_index), json=body)

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value", map_index: int = -1) -> Any:
        """The value a task pushed."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/{key}"
        return self._send("GET", path, params={"map_index": map_index, "deserialize": "true"})["value"]

    def task_log(self, dag_id: str, run_id: str, task_id: str, try_number: int, map_index: int = -1) -> list[str]:
        """The log of one try, one event per element."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{try_number}"
        content = self._send("GET", path, params={"map_index": map_index, "full_content": "true"})["content"]
        return [log_line(entry) for entry in content]

    def asset_events(self, dag_id: str, run_id: str) -> list[Json]:
        """The asset events that a run emitted, oldest first."""
        parameters = {"source_dag_id": dag_id, "source_run_id": run_id, "order_by": "timestamp", "limit": PAGE}
        return list(self._send("GET", "/api/v2/assets/events", params=parameters)["asset_events"])

    def ensure_pool(self, name: str, slots: int, description: str) -> None:
        """Create a pool (deferred tasks do not occupy it) unless it exists; a person may have changed its size."""
        if name not in self.pools():
            body = {"name": name, "slots": slots, "description": description, "include_deferred": False}
            self._send("POST", "/api/v2/pools", json=body)

    @staticmethod
    def _task_path(dag_id: str, run_id: str, task_id: str, map_index: int) -> str:
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
        return path if map_index < 0 else f"{path}/{map_index}"


def log_line(entry: str | Json) -> str:
    """An event of a task's log as text; of an exception what it says and where it was raised, without the frames."""
    if isinstance(entry, str):
        return entry
    known = {"event", "timestamp", "level", "logger", "filename", "lineno", "loc"}
    known |= {"dag_id", "run_id", "task_id", "map_index", "try_number", "ti_id"}  # the caller asked for these
    known |= {"error_detail"}
    parts = [entry.get("timestamp") or "", (entry.get("level") or "").upper(), str(entry.get("event", ""))]
    parts += [f"{name}={value}" for name, value in entry.items() if name not in known]
    return "\n".join([" ".join(part for part in parts if part), *map(_raised, entry.get("error_detail") or ())])


def _raised(fault: Json) -> str:
    frames = fault.get("frames") or ()
    place = f" ({frames[-1]['filename']}:{frames[-1]['lineno']})" if frames else ""
    return f"{fault.get('exc_type')}: {fault.get('exc_value')}{place}"

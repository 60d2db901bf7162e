"""A small client of Airflow's REST API v2, for the demo and for tests on a real scheduler.

A command line call of Airflow costs 5 to 6 s, a request some milliseconds.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import certifi
import httpx

from nightmill.domain.errors import ConfigError, NightmillError, Transient
from nightmill.domain.foreign_faults import TRUST, untrusted

AIRFLOW_URL, AIRFLOW_USER, AIRFLOW_PASSWORD = (  # where a command finds Airflow's REST API
    "NIGHTMILL_AIRFLOW_URL",
    "NIGHTMILL_AIRFLOW_USER",
    "NIGHTMILL_AIRFLOW_PASSWORD",
)
Json = dict[str, Any]
PAGE = 100
ATTEMPTS = 4  # of a call whose answer takes too long
TERMINAL_RUN_STATES = frozenset({"success", "failed"})


class AirflowRefused(NightmillError):
    """Airflow answered 4xx. `status` is the HTTP status."""

    def __init__(self, cause: str, remedy: str, status: int) -> None:
        super().__init__(cause, remedy)
        self.status = status


class AirflowClient:
    """Logs in on first use and again when the token has expired. Use as a context manager."""

    def __init__(self, base_url: str, username: str, password: str, timeout_s: float = 30.0) -> None:
        self.base_url = base_url.rstrip("/")
        self._login = {"username": username, "password": password}
        verify = _trusted() if self.base_url.startswith("https:") else False
        self._http = httpx.Client(base_url=self.base_url, timeout=timeout_s, trust_env=False, verify=verify)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._http.close()

    def health(self) -> Json:
        """/monitor/health: needs no login. Raises Transient while the server is not answering."""
        return self._send("GET", "/api/v2/monitor/health", login=False)

    def dag(self, dag_id: str) -> Json:
        """The DAG as Airflow knows it; AirflowRefused 404 until the dag-processor has parsed it."""
        return self._send("GET", f"/api/v2/dags/{dag_id}")

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

    def import_errors(self) -> list[Json]:
        """DAG files that cannot be imported."""
        return list(self._send("GET", "/api/v2/importErrors")["import_errors"])

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

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None, run_id: str | None = None) -> str:
        """Start a run without a logical date and return its run id. An unanswered call starts no second one."""
        run_id = run_id or f"manual__{datetime.now(UTC).isoformat()}"
        body: Json = {"logical_date": None, "conf": dict(conf or {}), "dag_run_id": run_id}
        try:
            return str(self._send("POST", f"/api/v2/dags/{dag_id}/dagRuns", json=body)["dag_run_id"])
        except Transient:
            if self.find_run(dag_id, run_id) is None:
                raise
        return run_id

    def dag_run(self, dag_id: str, run_id: str) -> Json:
        """The run with its state."""
        return self._send("GET", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")

    def find_run(self, dag_id: str, run_id: str) -> Json | None:
        """The same, None where there is no such run."""
        return self._found(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")

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

    def pools(self) -> dict[str, Json]:
        """All pools by name."""
        return {pool["name"]: pool for pool in self._send("GET", "/api/v2/pools", params={"limit": PAGE})["pools"]}

    def variable(self, key: str) -> str | None:
        """An Airflow variable of the metadata database, None where there is none."""
        found = self._found(f"/api/v2/variables/{key}")
        return None if found is None else str(found["value"])

    def plugins(self) -> set[str]:
        """The names of the plugins that the API server has loaded."""
        return {one["name"] for one in self._send("GET", "/api/v2/plugins", params={"limit": PAGE})["plugins"]}

    def ensure_pool(self, name: str, slots: int, description: str) -> None:
        """Create a pool (deferred tasks do not occupy it) unless it exists; a person may have changed its size."""
        if name not in self.pools():
            body = {"name": name, "slots": slots, "description": description, "include_deferred": False}
            self._send("POST", "/api/v2/pools", json=body)

    @staticmethod
    def _task_path(dag_id: str, run_id: str, task_id: str, map_index: int) -> str:
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
        return path if map_index < 0 else f"{path}/{map_index}"

    def _found(self, path: str) -> Json | None:
        try:
            return self._send("GET", path)
        except AirflowRefused as refusal:
            if refusal.status != 404:
                raise
        return None

    def _send(self, method: str, path: str, login: bool = True, **arguments: Any) -> Json:
        """One call. What can be asked twice is asked again where the answer takes too long: on a busy machine the
        api-server needs minutes."""
        left = ATTEMPTS if method == "GET" and login else 1
        while True:
            left -= 1
            try:
                return self._read(method, path, self._answer(method, path, login, arguments))
            except httpx.TransportError as problem:
                if why := untrusted(problem):
                    raise Transient(f"Airflow at {self.base_url} is not to be trusted: {why}.", TRUST) from None
                if not (left and isinstance(problem, httpx.TimeoutException)):
                    raise Transient(
                        f"Airflow at {self.base_url} did not answer ({problem!r}).",
                        "`make status` shows what runs; a busy machine needs patience.",
                    ) from problem

    def _answer(self, method: str, path: str, login: bool, arguments: Json) -> httpx.Response:
        if login and "Authorization" not in self._http.headers:
            self._log_in()
        response = self._http.request(method, path, **arguments)
        if login and response.status_code == 401:
            self._log_in()
            response = self._http.request(method, path, **arguments)
        return response

    def _log_in(self) -> None:
        token = self._read("POST", "/auth/token", self._http.post("/auth/token", json=self._login))
        self._http.headers["Authorization"] = f"Bearer {token['access_token']}"

    @staticmethod
    def _read(method: str, path: str, response: httpx.Response) -> Json:
        what = f"{method} {path} was answered {response.status_code}: {response.text[:500]}"
        if response.status_code >= 500:
            raise Transient(what, "see the api-server's log.")
        if response.is_redirect:  # the login would go along
            raise AirflowRefused(f"{method} {path} was redirected.", f"correct {AIRFLOW_URL}.", response.status_code)
        if response.status_code >= 400:
            raise AirflowRefused(what, "correct the request.", response.status_code)
        answer: Json = response.json() if response.content else {}
        return answer


def _trusted() -> ssl.SSLContext:
    """httpx's list of authorities, and the machine's own with SSL_CERT_FILE, which httpx reads only with trust_env."""
    context = ssl.create_default_context(cafile=certifi.where())
    context.load_default_certs()
    return context


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

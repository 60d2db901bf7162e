"""A local stack with job folders, a source database and a provider of its own: what an end-to-end test acts on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
import psycopg

from dev.stack.airflow_client import StackClient
from dev.stack.stack import Running, Stack
from nightmill.domain.errors import NightmillError, Transient

T = TypeVar("T")
PROVIDER_KEY = "key-of-the-other-provider"


@dataclass
class OtherProvider:
    """An OpenAI-compatible server that is not the stack's own and wants a key."""

    process: subprocess.Popen[bytes]
    url: str

    @classmethod
    def start(cls, folder: Path, batch_s: float) -> OtherProvider:
        folder.mkdir()
        port_file = folder / "port"
        options = ["--port", "0", "--port-file", str(port_file), "--data-dir", str(folder / "data")]
        options += ["--batch-seconds", str(batch_s), "--api-key", PROVIDER_KEY]
        command = [sys.executable, "-m", "dev.practice_provider", *options]
        env = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2] / "include")}
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
        wait_for(port_file.exists, 90, "the other provider's port")
        return cls(process, f"http://127.0.0.1:{port_file.read_text().strip()}")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)

    def faults(self, **changes: Any) -> None:
        set_faults(self.url, **changes)

    def books(self) -> dict[str, Any]:
        return read_books(self.url)


def set_faults(url: str, **changes: Any) -> None:
    httpx.patch(f"{url}/_faults", json=changes, trust_env=False, timeout=60).raise_for_status()


def read_books(url: str) -> dict[str, Any]:
    answer = httpx.get(f"{url}/_books", params={"summary": "1"}, trust_env=False, timeout=60)
    return dict(answer.raise_for_status().json())


@dataclass
class Site:
    """The running stack. `jobs` is the foreign directory of job folders."""

    stack: Stack
    running: Running
    client: StackClient
    provider: OtherProvider
    slow_provider: OtherProvider
    nights_provider: OtherProvider
    jobs: Path
    source_dsn: str

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Ask the ledger as its administrator."""
        with psycopg.connect(self.running.server.dsn("nightmill"), autocommit=True) as conn:
            cursor = conn.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def source(self, statement: str, *values: Any) -> None:
        with psycopg.connect(self.source_dsn) as conn:
            conn.execute(statement, values or None)

    def batch(self, run_id: str) -> dict[str, Any]:
        """The newest batch of a run."""
        row = self.sql(
            "select to_jsonb(batch) from nightmill.batch where run_id = %s order by incarnation desc limit 1", run_id
        )
        return dict(row[0][0]) if row else {}

    def buckets(self, run_id: str) -> dict[str, int]:
        """Items per outcome of a run's batch, counted row by row."""
        counts = "select kind, count(*) from nightmill.outcome where batch_id = %s group by 1"
        return dict(self.sql(counts, self.batch(run_id)["batch_id"]))

    def states(self, dag_id: str, run_id: str) -> dict[str, str]:
        """Task states; mapped ones as run_shard[0]."""
        return {
            f"{one['task_id']}[{one['map_index']}]" if one["map_index"] >= 0 else one["task_id"]: str(one["state"])
            for one in self.instances(dag_id, run_id)
        }

    def instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        return retried(lambda: self.client.task_instances(dag_id, run_id))

    def wait_state(self, dag_id: str, run_id: str, task: str, *wanted: str, timeout_s: float = 240) -> None:
        def there() -> bool:
            return self.states(dag_id, run_id).get(task) in wanted

        wait_for(
            there, timeout_s, f"{task} of {run_id} to be {' or '.join(wanted)}", lambda: self.states(dag_id, run_id)
        )

    def wait_run(self, dag_id: str, run_id: str, *wanted: str, timeout_s: float = 300) -> None:
        def there() -> bool:
            return str(retried(lambda: self.client.dag_run(dag_id, run_id))["state"]) in wanted

        wait_for(there, timeout_s, f"run {run_id} to be {' or '.join(wanted)}", lambda: self.states(dag_id, run_id))

    def log_of(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> str:
        """The log of the newest try."""
        (one,) = [
            one for one in self.instances(dag_id, run_id) if (one["task_id"], one["map_index"]) == (task_id, map_index)
        ]
        return "\n".join(self.client.task_log(dag_id, run_id, task_id, one["try_number"], map_index))

    def working(self, dag_id: str, run_id: str, task_id: str) -> list[tuple[int, int]]:
        """(map_index, pid of the task's process) of the instances that run now."""
        return [
            (one["map_index"], one["pid"])
            for one in self.instances(dag_id, run_id)
            if one["task_id"] == task_id and one["state"] == "running" and one["pid"]
        ]

    def kill_component(self, name: str) -> None:
        """kill -9, then wait until it is gone."""
        pid = self.stack.books.records()[name].pid
        kill([psutil.Process(pid)])


def kill(processes: Iterable[psutil.Process]) -> None:
    """kill -9, then wait until they are gone."""
    victims = list(processes)
    for process in victims:
        os.kill(process.pid, signal.SIGKILL)
    gone, alive = psutil.wait_procs(victims, timeout=60)
    assert not alive, [process.cmdline() for process in alive]
    assert gone


def processes_of(home: Path, sessions: set[int]) -> list[psutil.Process]:
    """Every process that was started for this state directory, by its environment, arguments or session."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), *process.environ().values()]
            if os.getsid(process.pid) in sessions or any(str(home) in word for word in words):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return [process for process in found if process.pid != os.getpid()]


def wait_for(
    condition: Callable[[], bool], timeout_s: float, what: str, explain: Callable[[], object] = lambda: ""
) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s:.0f} s in vain for {what}: {explain()}")
        time.sleep(0.3)


def retried(call: Callable[[], T], attempts: int = 20) -> T:
    """Ask again while the API does not answer."""
    for attempt in range(attempts):
        try:
            return call()
        except Transient:
            if attempt == attempts - 1:
                raise
            time.sleep(0.5)
    raise NightmillError("unreachable", "none")


def json_connection(**fields: object) -> str:
    return json.dumps(fields)


def bought(books: dict[str, Any]) -> dict[str, int]:
    """Calls in a provider's books by which runs send, collect and tidy up. `up` and the sweeps, which look around at
    any time, make others."""
    calls = books["calls"].items()
    return {call: count for call, count in calls if call.startswith(("POST", "DELETE")) or call.endswith("/content")}

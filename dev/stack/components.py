"""The processes of the local stack besides Postgres: how each is started and how it shows that it is ready."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

from dev.stack.ports import LOOPBACK
from dev.stack.processes import ProcessRecord, is_alive
from dev.stack.settings import StackSettings
from nightmill.domain.errors import Transient

PROVIDER = "simulator"
API_SERVER = "api-server"
DIRECT = build_opener(ProxyHandler({}))  # never through a proxy of the environment
# Names of the command line and of the part in Airflow's health answer.
HEARTBEATS = {"scheduler": "scheduler", "triggerer": "triggerer", "dag-processor": "dag_processor"}
AIRFLOW_PROCESSES = (API_SERVER, *HEARTBEATS)
# Part of what a process is started with; a change of any of them restarts it.
FINGERPRINTED = ("AIRFLOW_", "NIGHTMILL_", "PYTHONPATH", "GX_")


@dataclass(frozen=True, slots=True)
class Component:
    """A process to run: its arguments, its whole environment and its log file."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    log: Path

    @property
    def fingerprint(self) -> str:
        """Short hash of the arguments and of those variables that matter to the stack."""
        env = {name: value for name, value in self.env.items() if name.startswith(FINGERPRINTED)}
        text = json.dumps([list(self.argv), sorted(env.items())])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def components(settings: StackSettings, env: Mapping[str, str], ports: Mapping[str, int]) -> list[Component]:
    """All processes, in the order of their start."""
    python = str(settings.python)
    data = settings.home / PROVIDER
    options = ["--port", str(ports[PROVIDER]), "--port-file", str(data / "port"), "--data-dir", str(data)]
    options += ["--batch-seconds", f"{settings.batch_seconds:g}"]
    # Without log servers: they would listen on every interface, and all logs are on this machine anyway.
    commands = {
        PROVIDER: [sys.executable, "-m", "dev.practice_provider", *options],
        API_SERVER: [python, "-m", "airflow", "api-server", "--host", LOOPBACK, "--port", str(ports["api"])],
        "scheduler": [python, "-m", "airflow", "scheduler", "--skip-serve-logs"],
        "dag-processor": [python, "-m", "airflow", "dag-processor"],
        "triggerer": [python, "-m", "airflow", "triggerer", "--skip-serve-logs"],
    }
    return [Component(name, argv, env, settings.logs / f"{name}.log") for name, argv in commands.items()]


def not_ready(ports: Mapping[str, int], records: Mapping[str, ProcessRecord]) -> dict[str, str]:
    """By component, why it is not ready yet; "dead" for one whose process has ended. Empty when all are."""
    waiting = {name: "dead" for name, record in records.items() if not is_alive(record)}
    if PROVIDER in records and (reason := _ask(f"http://{LOOPBACK}:{ports[PROVIDER]}/v1/models")[1]):
        waiting.setdefault(PROVIDER, reason)
    health, reason = _ask(f"http://{LOOPBACK}:{ports['api']}/api/v2/monitor/health")
    if reason:
        waiting.setdefault(API_SERVER, reason)
        return waiting
    for name, part in HEARTBEATS.items():
        if name in records and not _beats(health.get(part) or {}, f"latest_{part}_heartbeat", records[name].started_at):
            waiting.setdefault(name, "no heartbeat yet")
    return waiting


def _beats(answer: Mapping[str, Any], field: str, since: float) -> bool:
    """Healthy by a heartbeat of this process, not by the last one of its killed predecessor."""
    beat = answer.get(field)
    return answer.get("status") == "healthy" and beat is not None and datetime.fromisoformat(beat).timestamp() >= since


def _ask(url: str) -> tuple[dict[str, Any], str | None]:
    """The JSON answer, or why there is none."""
    try:
        with DIRECT.open(url, timeout=5) as response:
            return dict(json.load(response)), None
    except (OSError, ValueError) as problem:
        return {}, f"no answer ({problem})"


def wait_until_ready(ports: Mapping[str, int], records: Mapping[str, ProcessRecord], timeout_s: float) -> None:
    """Wait for every component. Raises Transient naming the log file of one that died or did not get ready."""
    deadline = time.monotonic() + timeout_s
    while waiting := not_ready(ports, records):
        dead = [name for name, reason in waiting.items() if reason == "dead"]
        if dead or time.monotonic() > deadline:
            name = (dead or list(waiting))[0]
            what = "ended" if dead else f"is not ready after {timeout_s:.0f} s ({waiting[name]})"
            log = Path(records[name].log)
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
            raise Transient(f"The {name} {what}. The end of its log:\n{tail}", f"see {log}, then `make up` again.")
        time.sleep(0.5)

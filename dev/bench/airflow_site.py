"""A real local Airflow with one job per number of shards, all over the same documents and with one provider."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg

from dev.bench.contracts import fill
from dev.bench.shares import WAITING, AirflowRun, StateClock, mapped_seconds
from dev.bench.site import JOB_YAML, Site, ready_site, start_provider, write_job
from dev.stack.airflow_client import TERMINAL_RUN_STATES, StackClient
from dev.stack.airflow_settings import AIRFLOW_DATABASE, LEDGER_DATABASE
from dev.stack.components import AIRFLOW_PROCESSES
from dev.stack.postgres import Server, start_server
from dev.stack.processes import members
from dev.stack.settings import StackSettings
from dev.stack.stack import Running, Stack
from nightmill.domain.errors import NightmillError

SOURCE = "source"
READ_EVERY_S = 0.25


@dataclass(frozen=True)
class AirflowSite:
    """What runs. `server` holds the documents and, in databases of their own, the ledgers of in-process runs."""

    root: Path
    server: Server
    base_url: str
    stack: Stack
    running: Running
    client: StackClient

    def in_process(self, shards: int) -> Site:
        """A site on which the stages can be called without Airflow: the same documents, provider and job."""
        database = f"in_process_{shards}"
        self.server.create_database(database, template=SOURCE)
        return ready_site(self.root / database, self.server, database, self.base_url, _job_yaml(shards, "bench"))

    def warm_up(self, shards: int, timeout_s: float) -> None:
        """A dry run of the job, which passes through all its tasks and sends nothing."""
        self._finish(f"nightmill_curve_{shards}", "dry", timeout_s, dry_run=True)

    def run(self, shards: int, timeout_s: float) -> AirflowRun:
        """Trigger the job by REST and follow it to its end. Raises NightmillError when it fails or takes longer."""
        dag_id, run_id = f"nightmill_curve_{shards}", "curve"
        cpu = self.cpu_s()
        clock = self._finish(dag_id, run_id, timeout_s)
        cpu = self.cpu_s() - cpu
        wall = self._ask(
            AIRFLOW_DATABASE,
            "select extract(epoch from end_date - queued_at)::float from dag_run where dag_id = %s and run_id = %s",
            dag_id, run_id,
        )[0][0]  # fmt: skip
        return AirflowRun(
            shards=shards,
            wall_s=wall,
            mapped_s=mapped_seconds(self.client.task_instances(dag_id, run_id)),
            task_s=clock.seconds["running"],
            waiting_s=sum(clock.seconds[state] for state in WAITING),
            deferred_s=clock.seconds["deferred"],
            provider_s=self._provider_s(dag_id),
            cpu_s=cpu,
        )

    def cpu_s(self) -> float:
        """CPU seconds of Airflow's processes so far: those that run, and the ended ones they have waited for."""
        records = self.stack.books.records()
        total = 0.0
        for process in {one for name in AIRFLOW_PROCESSES for one in members(records[name])}:
            with suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def _finish(self, dag_id: str, run_id: str, timeout_s: float, **conf: bool) -> StateClock:
        self.client.wait_for_dag(dag_id)
        self.client.unpause(dag_id)
        self.client.trigger(dag_id, conf, run_id=run_id)
        return self._follow(dag_id, run_id, timeout_s)

    def _follow(self, dag_id: str, run_id: str, timeout_s: float) -> StateClock:
        """Read the states of the run's tasks from Airflow's database: some hundred of them four times a second would
        keep the API server busy."""
        clock, deadline = StateClock(), time.monotonic() + timeout_s
        with psycopg.connect(self.running.server.dsn(AIRFLOW_DATABASE), autocommit=True) as conn:
            while time.monotonic() < deadline:
                counts = conn.execute(
                    "select coalesce(state, 'none'), count(*) from task_instance where dag_id = %s and run_id = %s "
                    "group by 1",
                    (dag_id, run_id),
                )
                clock.read(time.monotonic(), dict(counts.fetchall()))
                row = conn.execute("select state from dag_run where dag_id = %s and run_id = %s", (dag_id, run_id))
                (state,) = row.fetchone() or ("missing",)
                if state in TERMINAL_RUN_STATES:
                    if state != "success":
                        raise self._failed(dag_id, run_id)
                    return clock
                time.sleep(READ_EVERY_S)
        raise NightmillError(f"The run {run_id} of {dag_id} took more than {timeout_s:.0f} s.", "set fewer SHARDS.")

    def _failed(self, dag_id: str, run_id: str) -> NightmillError:
        instances = self.client.task_instances(dag_id, run_id)
        failed = sorted({one["task_id"] for one in instances if one["state"] == "failed"})
        return NightmillError(
            f"The run {run_id} of {dag_id} failed in {', '.join(failed) or 'no task'}.", "run a job with `make demo`."
        )

    def _provider_s(self, dag_id: str) -> float:
        """How long at least one provider batch was out, from its create to the look that saw it ended."""
        rows = self._ask(
            LEDGER_DATABASE,
            "select sum(extract(epoch from upper(span) - lower(span)))::float from (select unnest(range_agg("
            "tstzrange(submitted_at, ended_at))) as span from nightmill.provider_batch where batch_id in "
            "(select batch_id from nightmill.batch where dag_id = %s)) as spans",
            dag_id,
        )
        return float(rows[0][0])

    def _ask(self, database: str, query: str, *values: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.running.server.dsn(database)) as conn:
            return conn.execute(query.encode(), values).fetchall()


@contextmanager
def airflow_site(texts: list[str], curve: Sequence[int], batch_s: float) -> Iterator[AirflowSite]:
    """Everything started, with a job per number of shards and a provider that takes `batch_s` seconds for a batch.
    Stopped and deleted afterwards."""
    root = Path(tempfile.mkdtemp(prefix="nightmill-bench-airflow-"))
    stack = Stack(StackSettings(home=root / "stack"))
    server, provider = start_server(root / "postgres"), None
    try:
        server.create_database(SOURCE)
        fill(server.dsn(SOURCE), texts)
        provider, base_url = start_provider(root, batch_s)
        for shards in curve:
            write_job(root / "jobs" / f"curve_{shards}", _job_yaml(shards, f"curve_{shards}"))
        _define(root / "jobs", server.dsn(SOURCE), base_url)
        running = stack.up()
        with running.client() as client:
            yield AirflowSite(root, server, base_url, stack, running, client)
    finally:
        stack.down()
        if provider is not None:
            provider.terminate()
            provider.wait()
        server.stop()
        shutil.rmtree(root)


def _define(jobs: Path, source: str, base_url: str) -> None:
    """The stack's processes inherit job folders and connections from this one."""
    os.environ["NIGHTMILL_JOBS_PATH"] = str(jobs)
    os.environ["AIRFLOW_CONN_SOURCE"] = source
    os.environ["AIRFLOW_CONN_PROVIDER"] = json.dumps({"conn_type": "generic", "host": base_url, "password": "bench"})


def _job_yaml(shards: int, view: str) -> str:
    return JOB_YAML.replace("{view: bench}", f"{{view: {view}}}") + f"shards: {{count: {shards}}}\n"

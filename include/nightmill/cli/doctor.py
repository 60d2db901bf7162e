"""doctor: one list of everything a run needs, each with its remedy. No secret is shown."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path

from nightmill.domain.errors import ConfigError, NightmillError, Transient
from nightmill.jobs import job_folders
from nightmill.operations import doctor
from nightmill.operations.doctor import Doubt, Finding, Status, attempt
from nightmill.services.airflow_rest import AIRFLOW_PASSWORD, AIRFLOW_URL, AIRFLOW_USER, AirflowClient, AirflowRefused
from nightmill.services.connections import DEPLOYMENT, LEDGER, OBJECT_STORE, LookedUp, from_variables, payload_store
from nightmill.services.environment import utc_now
from nightmill.storage.deployments import VARIABLE
from nightmill.storage.session import Connection

PLUGINS = frozenset({"nightmill_access", "nightmill_console", "nightmill_listener"})
EXECUTOR, LOCAL = "AIRFLOW__CORE__EXECUTOR", "LocalExecutor"
POOLS = ("nightmill_batch", "nightmill_online")
_MARKS = {Status.OK: "ok     ", Status.WARNING: "warning", Status.FAILED: "FAILED ", Status.NOT_CHECKED: "-      "}


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; 1 when one of them failed."""
    findings = []
    for finding in examine(arguments.jobs, os.environ):
        findings.append(finding)
        if not arguments.json:
            print(_text(finding), flush=True)
    counts = Counter(finding.status for finding in findings)
    if arguments.json:
        print(json.dumps([asdict(finding) for finding in findings]))
    else:
        print(", ".join(f"{counts[status]} {status}" for status in Status if counts[status]))
    return 1 if counts[Status.FAILED] else 0


def examine(built_in: Path, variables: Mapping[str, str]) -> Iterator[Finding]:
    """All checks in the order in which to mend things."""
    connections = LookedUp(lambda conn_id: from_variables(conn_id, variables))
    with ExitStack() as opened:
        ledger: Connection | None = None

        def open_ledger() -> str:
            nonlocal ledger
            ledger = opened.enter_context(doctor.open_ledger(connections.database(LEDGER)))
            return f"{LEDGER} answers"

        yield attempt("ledger", open_ledger)
        if ledger is not None:
            findings = list(doctor.examine_ledger(ledger, utc_now))
            yield from findings
            if any(one.status is Status.FAILED and one.check in doctor.DECISIVE for one in findings):
                ledger = None  # what jobs need from it could only fail as well
        if ledger is not None:
            yield doctor.examine_deployment(ledger, _this_airflow(variables))
            yield doctor.examine_maintenance(ledger, utc_now)
        found_by_all = bool(variables.get(OBJECT_STORE)) or variables.get(EXECUTOR) == LOCAL
        yield doctor.examine_store(lambda: payload_store(connections.lookup, variables), found_by_all=found_by_all)
        found = job_folders.find(job_folders.roots(built_in))
        yield from doctor.examine_jobs(connections, found, ledger, utc_now)
    yield from examine_airflow(variables)


def _this_airflow(variables: Mapping[str, str]) -> str | None:
    """The id of the Airflow that the command speaks for, as it is told, or as that Airflow's own variable says; empty
    where it has none. None where nothing is known of an Airflow."""
    url, user, password = (variables.get(name) for name in (AIRFLOW_URL, AIRFLOW_USER, AIRFLOW_PASSWORD))
    if variables.get(DEPLOYMENT):
        return variables[DEPLOYMENT]
    if url and user and password and "@" not in url:
        with suppress(NightmillError), AirflowClient(url, user, password, doctor.PATIENCE_S) as client:
            return client.variable(VARIABLE) or ""
    return None  # what is wrong with the address is said below


def examine_airflow(variables: Mapping[str, str]) -> Iterator[Finding]:
    """Components, pools and import errors, through the REST API: only where its address and login are given."""
    wanted = (AIRFLOW_URL, AIRFLOW_USER, AIRFLOW_PASSWORD)
    missing = [name for name in wanted if not variables.get(name)]
    if missing:
        remedy = f"Set {', '.join(wanted)} to have its pools and components looked at too."
        yield Finding("airflow", Status.NOT_CHECKED, f"{', '.join(missing)} not set", remedy)
        return
    if "@" in variables[AIRFLOW_URL]:
        problem = f"{AIRFLOW_URL} holds a login"
        yield Finding("airflow", Status.FAILED, problem, f"Put it into {AIRFLOW_USER} and {AIRFLOW_PASSWORD}.")
        return
    url, user, password = (variables[name] for name in wanted)
    with AirflowClient(url, user, password, doctor.PATIENCE_S) as client:
        for component in ("metadatabase", "scheduler", "dag_processor", "triggerer"):
            yield attempt(f"airflow: {component}", lambda component=component: _component(client, component))  # type: ignore[misc]
        for pool in POOLS:
            yield attempt(f"airflow: pool {pool}", lambda pool=pool: _pool(client, pool))  # type: ignore[misc]
        yield attempt("airflow: import errors", lambda: _import_errors(client))


def _component(client: AirflowClient, name: str) -> str:
    status = (client.health().get(name) or {}).get("status")
    if status != "healthy":
        why = " Waiting shards are woken by it." if name == "triggerer" else ""
        said = status or "not there"
        raise Transient(
            f"Airflow's {name} is {said}.{why}", f"Start it (`airflow {name.replace('_', '-')}`) and see its log."
        )
    return "healthy"


def _pool(client: AirflowClient, name: str) -> str | Doubt:
    pool = client.pools().get(name)
    if pool is None:
        raise ConfigError(
            f"The pool {name} does not exist: tasks in it would never start.",
            f'Create it: `airflow pools set {name} 8 "nightmill"`.',
        )
    if pool.get("include_deferred"):
        return Doubt(
            "counts deferred tasks: waiting shards would take the slots of those that work",
            "Turn include_deferred off under Admin > Pools.",
        )
    return f"{pool['slots']} slots"


def _import_errors(client: AirflowClient) -> str | Doubt:
    files = sorted({str(error["filename"]) for error in client.import_errors()})
    if files:
        return Doubt(f"in {', '.join(files)}", "Run `python -m nightmill validate`, or read them in the UI.")
    try:
        missing = sorted(PLUGINS - client.plugins())
    except AirflowRefused:  # not everybody may list them
        return "none"
    if missing:
        return Doubt(
            f"the API server has not loaded {', '.join(missing)}",
            "Install nightmill's wheel there, or put a checkout's plugins/ into its plugins folder; then restart it. "
            "Without them nobody asks who may cancel or replay, marking a run as failed cancels nothing, and the pages "
            "of tasks are missing.",
        )
    return "none"


def _text(finding: Finding) -> str:
    seen = finding.seen.replace("\n", "\n          ")
    line = f"{_MARKS[finding.status]}  {finding.check}: {seen}"
    return f"{line}\n          -> {finding.remedy}" if finding.remedy else line

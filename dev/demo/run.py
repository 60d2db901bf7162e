"""`make demo` and `make run`: a job from its source rows to the published view, through the real scheduler."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from dev.stack.airflow_client import TERMINAL_RUN_STATES, StackClient
from dev.stack.airflow_settings import ADMIN_USER, LEDGER_DATABASE, OWNER, READER
from dev.stack.stack import Running, Stack
from nightmill.domain.errors import ConfigError, Transient
from nightmill.domain.states import BatchState
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.filters import as_json, read_all
from nightmill.jobs.output.columns import PROVENANCE_COLUMNS
from nightmill.storage.batches import Batch

JOB = "license_audit"
PREFIX = "nightmill_"
TIMEOUT_S = 900.0
INTERVAL_S = 2.0
LOG_TAIL_LINES = 40
WIDTH = 120  # characters of a terminal line


def run_demo(stack: Stack) -> int:
    """Bring the stack up, load the demo's input, run the job and print what came of it. 1 if the run failed."""
    print("starting the local stack ...", flush=True)
    running = stack.up()
    print(views_made(running), end="")
    print(f"Airflow UI: {running.ui}", flush=True)
    load_input(running)
    return run_job(running, JOB)


def run_job(running: Running, job: str, chosen: Mapping[str, Any] | None = None, filters: Sequence[str] = ()) -> int:
    """Trigger a job with what was chosen in place of its form's defaults, follow its run and print its report and
    first rows. 1 if the run failed. Raises ConfigError for a job that no folder defines, for a broken folder, for one
    that the stack does not know of, and for a filter (`NAME=VALUE`) that does not fit."""
    definition = definition_of(running.settings.dags_folder, job)
    dag_id, view = PREFIX + job, definition.job.publish.view
    conf = dict(chosen or {}) | as_json(read_all(definition.job.source.filters, filters))
    with running.client() as client:
        if running.outdated and client.find_dag(dag_id) is None:
            raise ConfigError(
                f"The stack was started with other settings (NIGHTMILL_JOBS_PATH, for one) and has no DAG {dag_id}.",
                "run `make up`: it restarts what is concerned.",
            )
        client.wait_for_dag(dag_id)
        client.unpause(dag_id)
        run_id = client.trigger(dag_id, conf)
        print(f"triggered {dag_id}, run {run_id}", flush=True)
        if follow(client, dag_id, run_id, lambda: standing(running, dag_id, run_id)) != "success":
            print(failure_report(client, dag_id, run_id), file=sys.stderr)
            return 1
    batch = batch_of(running, dag_id, run_id)
    print(completion_report(running, batch))
    if batch.state is BatchState.ESTIMATED:
        return 0
    if batch.state is BatchState.STAGED:
        print(f"\nfive rows of the preview (nightmill.rows_{view}, batch {batch.batch_id}):")
        source = psycopg.sql.SQL("{} where part_id = {}").format(
            psycopg.sql.Identifier("nightmill", f"rows_{view}"), batch.batch_id
        )
        login = OWNER
    else:
        print(f"\nfive rows of results.{view}:")
        source, login = psycopg.sql.Composed([psycopg.sql.Identifier("results", view)]), READER
    with psycopg.connect(running.ledger_dsn(login)) as connection:
        print(first_rows(connection, source, limit=5))
    print(f"\nAirflow UI: {running.ui}/dags/{dag_id}  user {ADMIN_USER}  password {running.admin_password}")
    print("The stack stays up: `make psql` opens the database, `make down` stops everything.")
    return 0


def definition_of(dags_folder: Path, job: str) -> JobDefinition:
    """A job folder. Raises BrokenJobFolder with all its mistakes."""
    from nightmill.domain.suggestions import aside, listed
    from nightmill.jobs import job_folders
    from nightmill.jobs.check.definition import check_definition

    folders = job_folders.find(job_folders.roots(dags_folder / "jobs")).folders
    if job not in folders:
        raise ConfigError(
            f"There is no job folder {job!r}{aside(job, folders)}.",
            f"Put it into dags/jobs or a folder that {job_folders.JOBS_PATH} names. Found: {listed(folders)}.",
        )
    definition = job_folders.read(folders[job])
    check_definition(definition)
    return definition


def views_made(running: Running) -> str:
    """A line for each job folder whose view was made or whose fault stands in its way; nothing is said of the rest."""
    lines = [
        f"job {one.job}: {one.fault or one.told or f'{one.outcome} results.{one.view}'}\n"
        for one in running.applied
        if one.outcome != "unchanged"
    ]
    return "".join(lines)


def has_input(running: Running) -> bool:
    """Whether the source tables are there; an `up` that was interrupted can have left them out."""
    with psycopg.connect(running.server.dsn(LEDGER_DATABASE)) as connection:
        return connection.execute("select to_regclass('demo.parsed_requirement') is not null").fetchone() == (True,)


def load_input(running: Running) -> None:
    """Fill the demo's source tables from the installed distributions."""
    from dev.demo.source import load

    print(f"demo input: {load(running.server.dsn(LEDGER_DATABASE))}", flush=True)


def batch_of(running: Running, dag_id: str, run_id: str) -> Batch:
    """The batch that a run which has ended worked on."""
    from nightmill.services.connections import environment_of
    from nightmill.storage import batches

    with environment_of(running.env).ledger() as conn:
        batch = batches.newest_of_run(conn, dag_id, run_id)
    assert batch is not None, f"run {run_id} has no batch"
    return batch


def completion_report(running: Running, batch: Batch) -> str:
    """The completion report of a batch."""
    from nightmill.services.connections import environment_of
    from nightmill.stages import report

    return report.render(report.build(environment_of(running.env), batch.batch_id))


def standing(running: Running, dag_id: str, run_id: str) -> str:
    """Where the run's batch stands, in the words of `status`: rounds, repeated requests, refusals and dead letters, and
    when it looks again. Empty before there is one."""
    from nightmill.operations.status import line, look
    from nightmill.services.connections import environment_of
    from nightmill.storage import batches

    env = environment_of(running.env)
    with suppress(Transient):  # the next look asks again
        with env.ledger() as conn:
            batch = batches.newest_of_run(conn, dag_id, run_id)
        if batch is not None:
            return line(look(env, batch.batch_id)[0], to_go=False)
    return ""


def first_rows(connection: psycopg.Connection[Any], source: psycopg.sql.Composable, limit: int) -> str:
    """The first rows of a view, or of a part of its table, as a text table: source id and typed columns, without the
    provenance."""
    with connection.cursor() as cursor:
        cursor.execute(psycopg.sql.SQL("select * from {} limit 0").format(source))
        described = [column.name for column in cursor.description or ()]
        names = ["source_id", *(column for column in described if column not in PROVENANCE_COLUMNS)]
        columns = psycopg.sql.SQL(", ").join(map(psycopg.sql.Identifier, names))
        query = psycopg.sql.SQL("select {} from {} order by source_id limit {}")
        cursor.execute(query.format(columns, source, psycopg.sql.Literal(limit)))
        return text_table(names, cursor.fetchall())


def text_table(names: Sequence[str], rows: Sequence[Sequence[object]], width: int = WIDTH) -> str:
    """Aligned columns in at most `width` characters: names are broken at underscores, values are put on one line, and
    the widest columns are cut first."""
    heads = [name.replace("_", "_\n").split("\n") for name in names]
    cells = [[_plain(value) for value in row] for row in rows]
    sizes = [max(map(len, [*head, *(row[at] for row in cells)])) for at, head in enumerate(heads)]
    while sum(sizes) + 2 * (len(sizes) - 1) > width and max(sizes) > 4:
        sizes[sizes.index(max(sizes))] -= 1
    height = max(map(len, heads))
    lines = [[""] * (height - len(head)) + head for head in heads]
    table = [*zip(*lines, strict=True), ["-" * size for size in sizes], *cells]
    return "\n".join(
        "  ".join(_cut(cell, size).ljust(size) for cell, size in zip(row, sizes, strict=True)).rstrip() for row in table
    )


def _plain(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    return " ".join(text.split())


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 3] + "..."


def follow(
    client: StackClient,
    dag_id: str,
    run_id: str,
    how_far: Callable[[], str] = lambda: "",
    timeout_s: float = TIMEOUT_S,
) -> str:
    """Print a line whenever the tasks' states change, and one whenever `how_far` says something new, and return the
    run's final state, or "timeout"."""
    began, shown = time.monotonic(), ["", ""]
    while time.monotonic() - began < timeout_s:
        state = str(client.dag_run(dag_id, run_id)["state"])
        line = queued(client, dag_id, run_id) if state == "queued" else progress(client.task_instances(dag_id, run_id))
        for at, now in enumerate((line, how_far())):
            if now and now != shown[at]:
                print(f"{time.monotonic() - began:5.0f} s  {now}", flush=True)
                shown[at] = now
        if state in TERMINAL_RUN_STATES:
            print(f"{time.monotonic() - began:5.0f} s  run {state}", flush=True)
            return state
        time.sleep(INTERVAL_S)
    return "timeout"


def queued(client: StackClient, dag_id: str, run_id: str) -> str:
    """What a run waits for that has not begun: runs of one job do not overlap. A job with a schedule has one as soon as
    it is switched on."""
    runs = client.dag_runs(dag_id)  # by now it can run itself
    ahead = [str(run["dag_run_id"]) for run in runs if run["state"] == "running" and run["dag_run_id"] != run_id]
    return f"waits until {' and '.join(ahead)} has ended: runs of a job do not overlap" if ahead else "queued"


def progress(instances: Sequence[Mapping[str, Any]]) -> str:
    """What is going on, one phrase per unfinished task: `run_shard 3/8 success, 5 deferred`."""
    tasks: dict[str, Counter[str]] = {}
    for instance in instances:
        tasks.setdefault(str(instance["task_id"]), Counter())[instance["state"] or "waiting"] += 1
    done = sum(1 for states in tasks.values() if set(states) <= {"success", "skipped"})
    phrases = [_phrase(name, states) for name, states in tasks.items() if set(states) - {"success", "skipped"}]
    active = [phrase for phrase in phrases if not phrase.endswith(" waiting")]
    return "; ".join([f"{done}/{len(tasks)} tasks done", *active])


def _phrase(name: str, states: Counter[str]) -> str:
    total = states.total()
    if total == 1:
        return f"{name} {next(iter(states))}"
    return f"{name} " + ", ".join(f"{count}/{total} {state}" for state, count in sorted(states.items()))


def failure_report(client: StackClient, dag_id: str, run_id: str) -> str:
    """The failed tasks of a run and the end of the first one's log."""
    failed = [one for one in client.task_instances(dag_id, run_id) if one["state"] == "failed"]
    names = ", ".join(
        f"{one['task_id']}[{one['map_index']}]" if one["map_index"] >= 0 else one["task_id"] for one in failed
    )
    lines = [f"run {run_id} of {dag_id} did not succeed: {f'{names} failed' if names else 'no task failed (timeout?)'}"]
    culprit = next(iter(failed), None)
    if culprit is not None:
        log = client.task_log(dag_id, run_id, culprit["task_id"], culprit["try_number"], culprit["map_index"])
        lines += [f"the end of the log of {culprit['task_id']}:", *log[-LOG_TAIL_LINES:]]
    return "\n".join(lines)

"""One DAG per job folder. Wiring only: every decision is a stage's.

Parsing is on the hot path (each task parses this again, the DAG processor all of it every half minute), so stages are
imported inside tasks, while a task runs only its own DAG is built, and what was checked is not checked again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, AssetAlias, chain, get_parsing_context, task
from airflow.sdk.definitions.param import ParamsDict

from nightmill.domain.errors import ConfigError, NightmillError
from nightmill.jobs import job_folders
from nightmill.jobs.check.definition import check_definition
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.output.job_code import said_by
from nightmill.jobs.settings.job import Job
from nightmill.orchestration import links, tasks
from nightmill.orchestration.checked_folders import CheckedFolders
from nightmill.orchestration.retries import patience
from nightmill.orchestration.sensor import ShardSensor
from nightmill.orchestration.timetables import schedule_of, start_of
from nightmill.orchestration.trigger_form import trigger_form

log = logging.getLogger(__name__)
PREFIX = "nightmill_"
POOL = "nightmill_batch"


def job_dags(built_in: Path) -> Iterator[DAG]:
    """The DAGs of all good job folders below `built_in` and NIGHTMILL_JOBS_PATH. While a task runs only its own, and no
    other folder is read."""
    roots, wanted = job_folders.roots(built_in), get_parsing_context().dag_id
    if wanted is not None:
        yield from _running(job_folders.named(roots, wanted.removeprefix(PREFIX)))
        return
    checked = CheckedFolders()
    for folder in job_folders.find(roots).folders.values():
        dag, _ = _build(folder, checked)
        if dag is not None:
            yield dag


def _running(folder: Path | None) -> Iterator[DAG]:
    """Nothing is checked that the task does not need: the folder may be edited just now."""
    if folder is not None:
        dag, fault = _build(folder, None)
        if dag is not None:
            yield dag
        else:
            log.error("this task cannot start: %s", fault)


def refuse_broken_jobs(built_in: Path) -> None:
    """Raise ConfigError with what is wrong with the other job folders.

    For a DAG file of its own: Airflow takes every DAG of a file with an import error off the schedule, so the error
    must not come from the file that holds the good jobs.
    """
    found, checked = job_folders.find(job_folders.roots(built_in)), CheckedFolders()
    told = (_fault_of(folder, checked) for folder in found.folders.values())
    faults = [*map(str, found.faults), *(fault for fault in told if fault is not None)]
    if faults:
        text = "\n\n".join(faults).encode("utf-8", "backslashreplace").decode()  # a folder's name can be no UTF-8
        raise ConfigError(text, "Mend these job folders; all other jobs go on.")


def _fault_of(folder: Path, checked: CheckedFolders) -> str | None:
    """What is wrong with a folder. No DAG is built of one that is known to be good."""
    try:
        if job_folders.read(folder) in checked:
            return None
    except NightmillError as fault:
        return f"{folder}: {fault}"
    return _build(folder, checked)[1]


def _build(folder: Path, checked: CheckedFolders | None) -> tuple[DAG | None, str | None]:
    """A folder's DAG, or what is wrong with it. `checked` is None while a task runs."""
    try:
        definition = job_folders.read(folder)
        if checked is None:
            _ = definition.checks, definition.prompt, definition.columns
            return build_dag(definition, folder), None
        return _checked_dag(definition, folder, checked), None
    except NightmillError as fault:
        return None, f"{folder}: {fault}"
    except Exception as fault:  # nobody foresaw it: the other folders become DAGs all the same
        return None, f"{folder}: a file of this job raised {said_by(fault)}. Remedy: mend it."


def _checked_dag(definition: JobDefinition, folder: Path, checked: CheckedFolders) -> DAG:
    known = definition in checked
    if not known:
        check_definition(definition)
    try:
        dag = build_dag(definition, folder)
    except Exception:
        checked.discard(definition)  # or nightmill_broken_jobs.py would not look at it
        raise
    if not known:
        checked.add(definition)
    return dag


def build_dag(definition: JobDefinition, folder: Path) -> DAG:
    """The stages of one job as a DAG. Raises ConfigError for a job.yaml that does not parse."""
    job = definition.job
    with DAG(
        PREFIX + definition.name,
        description=job.description.strip(),
        doc_md=_doc(definition),
        schedule=schedule_of(job),
        start_date=start_of(job.dag),
        catchup=job.dag.catchup,
        max_active_runs=job.dag.max_active_runs,
        tags=sorted({"nightmill", *job.tags}),
        auto_register=False,  # built for a look at its mistakes too; what a DAG file wants to keep it names
        default_args={"owner": job.owner, **patience(job.dag.retries, job.dag.retry_delay_s)},
    ) as dag:
        _wire(job, str(folder))
    # Not before: Airflow copies the params of a DAG into each task that is made, which is most of what a DAG costs. A
    # task that runs takes the DAG's own.
    dag.params = ParamsDict(trigger_form(job))
    links.attach(dag)
    return dag


def _wire(job: Job, folder: str) -> None:
    batch_id = task(pool=POOL)(tasks.freeze_snapshot)(folder)
    shards = task(tasks.preflight)(folder, task(pool=POOL)(tasks.plan_shards)(batch_id))
    run_shard = ShardSensor.partial(
        task_id="run_shard",
        folder=folder,
        pool=POOL,
        retries=10,
        map_index_template="{{ task.shard_label }}",
    ).expand_kwargs(shards)
    chain(
        run_shard,
        _after(tasks.reconcile)(folder, batch_id),
        _after(tasks.check_staging)(folder, batch_id),
        _after(tasks.compare)(folder, batch_id),
        _approve(job, folder, batch_id),
        _after(tasks.publish, outlets=[AssetAlias(tasks.asset_name(job.publish.view))])(folder, batch_id),
        _after(tasks.report)(batch_id),
    )


def _approve(job: Job, folder: str, batch_id: Any) -> Any:
    if job.approve is None:
        return _after(tasks.approve)(folder, batch_id)
    from nightmill.orchestration.approval import Approval, form  # slow, and few jobs need it

    return Approval(task_id="approve", folder=folder, batch_id=batch_id, params=form(), trigger_rule="none_failed")


def _after(stage: Callable[..., Any], **options: Any) -> Any:
    """A task behind run_shard. A mapped task over nothing is skipped, and a night on which everything is reused is a
    normal night."""
    return task(trigger_rule="none_failed", **options)(stage)


def _doc(definition: JobDefinition) -> str:
    job = definition.job
    return "\n".join(
        (
            f"## {definition.name}",
            "",
            job.description.strip(),
            "",
            f"Publishes `results.{job.publish.view}`. Model `{job.provider.model}` through connection "
            f"`{job.provider.conn_id}`; source connection `{job.source.conn_id}`.",
            "",
            "Clearing a task never pays twice. Clear `run_shard` to re-attach, `check_staging` to check again after "
            "loosening checks.yaml. A new snapshot needs a new run or a backfill.",
        )
    )

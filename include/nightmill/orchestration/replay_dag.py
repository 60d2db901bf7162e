"""The DAG `nightmill_replay`: a form that says which dead letters to send again, and triggers their job's DAG."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Context, Param, get_current_context, get_parsing_context, task
from airflow.sdk.exceptions import AirflowSkipException

from nightmill.domain.failures import EndedAs, FailureClass
from nightmill.jobs import job_folders
from nightmill.orchestration.failing import as_airflow_failure, refuse_cleared
from nightmill.orchestration.retries import PATIENT

log = logging.getLogger(__name__)

START = datetime(2025, 1, 1, tzinfo=UTC)
CHOICE = ("classes", "codes", "ended_as", "tenants", "ids", "since")
_DOC = """Sends dead letters and items in review of a batch again. A child batch takes over the whole manifest of its
parent; what is not chosen stays as the parent settled it, so publishing the child shows no fewer rows. Nothing is paid
twice.

`python -m nightmill dead-letters --count` shows what there is to choose from."""


def replay_dag(built_in: Path) -> DAG:
    """The DAG over all job folders."""
    with DAG(
        "nightmill_replay",
        description="Send dead letters again",
        doc_md=_DOC,
        schedule=None,
        is_paused_upon_creation=False,  # it runs only when a person triggers it
        start_date=START,
        catchup=False,
        tags=["nightmill", "operations"],
        params=_form(_jobs(built_in)),
        default_args={"owner": "nightmill", **PATIENT},
    ) as dag:
        chosen = task(choose)(str(built_in))
        TriggerOnce(
            task_id="trigger",
            trigger_dag_id="{{ ti.xcom_pull(task_ids='choose')['dag_id'] }}",  # must be hashable to be serialised
            trigger_run_id="{{ ti.xcom_pull(task_ids='choose')['run_id'] }}",
            conf=chosen["conf"],
            logical_date=None,
            skip_when_already_exists=True,  # a retry of this task
            fail_when_dag_is_paused=True,
        )
    return dag


def _jobs(built_in: Path) -> list[str]:
    """The names that the form offers; no task that runs needs them, and the trigger has checked what was chosen."""
    if get_parsing_context().dag_id is not None:
        return []
    return sorted(job_folders.find(job_folders.roots(built_in)).folders)


class TriggerOnce(TriggerDagRunOperator):
    """Airflow's operator: the run that it triggers bears the name of the person who triggered this one."""

    def execute(self, context: Context) -> None:
        """Trigger the job's DAG."""
        refuse_cleared(context)
        super().execute(context)


def choose(built_in: str) -> dict[str, Any]:
    """What to trigger. Fails with the way out where the replay would be refused."""
    from nightmill.jobs.rules.dead_letters import DeadLetterFilter
    from nightmill.operations import replay
    from nightmill.orchestration.connections import environment

    context = get_current_context()
    refuse_cleared(context)
    params, run = context["params"], context["dag_run"]
    with as_airflow_failure():
        found = job_folders.find(job_folders.roots(Path(built_in))).folders
        choice = DeadLetterFilter.of_json({name: params[name] for name in CHOICE if params[name]})
        prospect = replay.look(environment(), job_folders.read(found[params["job"]]), params["batch"], choice)
    log.info("%s", prospect)
    if params["dry_run"]:
        raise AirflowSkipException("dry run: nothing is triggered")
    return {
        "dag_id": prospect.parent.dag_id,
        "run_id": f"replay_of_batch_{prospect.parent.batch_id}__{run.run_id}",
        "conf": replay.configuration(prospect, choice, params["note"]),
    }


def _form(jobs: list[str]) -> dict[str, Param]:
    known: dict[str, Any] = {"enum": jobs} if jobs else {}
    return {
        "job": Param(type="string", title="Job", description="Whose batch.", **known),
        "batch": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            title="Batch",
            description="Which batch is the parent. Empty: the job's newest that has ended.",
        ),
        "classes": _words("Classes", f"Any of {', '.join(FailureClass)}. Empty: all.", examples=list(FailureClass)),
        "codes": _words("Codes", "Such as schema, a line each. Empty: all."),
        "ended_as": _words(
            "Ended as", f"Any of {', '.join(get_args(EndedAs))}. Empty: all.", examples=list(get_args(EndedAs))
        ),
        "tenants": _words("Tenants", "A line each. Empty: all."),
        "ids": _words("Ids", "Ids of the source, a line each. Empty: all."),
        "since": Param(
            None, type=["null", "string"], format="date-time", title="Since", description="Gave up since. Empty: ever."
        ),
        "dry_run": Param(False, type="boolean", title="Dry run", description="Only log what would be sent again."),
        "note": Param(
            None,
            type=["null", "string"],
            maxLength=500,
            title="Note",
            description="Why this replay; kept with the batch.",
        ),
    }


def _words(title: str, description: str, **schema: Any) -> Param:
    return Param([], type="array", items={"type": "string"}, title=title, description=description, **schema)

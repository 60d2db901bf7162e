"""The DAG `nightmill_rollback`: a form that says what to undo, and the event that tells a view's consumers."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, AssetAlias, Param, get_current_context, get_parsing_context, task
from airflow.sdk.exceptions import AirflowSkipException

from nightmill.jobs import job_folders
from nightmill.orchestration.failing import as_airflow_failure, refuse_cleared
from nightmill.orchestration.retries import PATIENT
from nightmill.orchestration.tasks import asset_name, emit

if TYPE_CHECKING:
    from nightmill.operations.rollback import Done

log = logging.getLogger(__name__)

NAME = "nightmill_rollback"
START = datetime(2025, 1, 1, tzinfo=UTC)
_DOC = """Shows what a view showed before, by a new publication, and holds what it took back: runs that would replace it
stop in preflight, before they pay, until somebody runs `python -m nightmill release VIEW`. The view's asset gets an
event of kind "rollback", so that its consumers can read again.

`python -m nightmill history VIEW` shows what there is to go back to."""


def rollback_dag(built_in: Path) -> DAG:
    """The DAG over the views of all job folders."""
    views = _views(built_in)
    with DAG(
        NAME,
        description="Undo what a view shows",
        doc_md=_DOC,
        schedule=None,
        is_paused_upon_creation=False,  # it runs only when a person triggers it
        start_date=START,
        catchup=False,
        tags=["nightmill", "operations"],
        params=_form(views),
        default_args={"owner": "nightmill", **PATIENT},
        auto_register=False,
    ) as dag:
        task(outlets=[AssetAlias(asset_name(view)) for view in views])(roll_back)()
    return dag


def roll_back() -> None:
    """Roll back once, however often the task is retried; then emit the view's asset event, at least once."""
    from nightmill.operations import rollback
    from nightmill.orchestration.connections import environment

    context = get_current_context()
    refuse_cleared(context)
    params, run = context["params"], context["dag_run"]
    request = f"{run.dag_id} {run.run_id}"
    wish = rollback.Wish(params["view"], params["to"], params["interval"], bool(params["revoke"]), params["reason"])
    with as_airflow_failure():
        env = environment()
        done = rollback.done_before(env, request)
        if done is None:
            plan = rollback.look(env, wish)
            for line in rollback.described(plan, wish):
                log.info("%s", line)
            if params["dry_run"]:
                raise AirflowSkipException("dry run: nothing is rolled back")
            who = getattr(run, "triggering_user_name", None) or "airflow"
            done = rollback.run(env, wish, plan, who, request)
    log.info("to let runs publish again: %s", done.hold.release)
    _emit(context, done)


def _emit(context: Any, done: Done) -> None:
    view = done.hold.view_name
    event = {
        "view": view,
        "batch_id": done.shown.batch_id,
        "publish_seq": done.hold.publish_seq,
        "kind": "rollback",
        "intervals": [[start.isoformat(), end.isoformat()] for start, end in done.intervals],
    }
    emit(context, view, event)


def _views(built_in: Path) -> list[str]:
    """A task of another DAG parses this file too, and needs none."""
    jobs = job_folders.readable(built_in) if get_parsing_context().dag_id in (None, NAME) else []
    return sorted({job.publish.view for job in jobs})


def _form(views: list[str]) -> dict[str, Param]:
    known: dict[str, Any] = {"enum": views} if views else {}
    text: dict[str, Any] = {"type": ["null", "string"]}
    return {
        "view": Param(type="string", title="View", description="What to undo, in schema results.", **known),
        "to": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            title="Publication",
            description="What to show again, by its number in `history`. Empty: the publication before.",
        ),
        "interval": Param(
            None,
            title="Interval",
            description="Undo this data interval only: its start, such as 2026-01-31 or 2026-01-31T02:00+00:00.",
            **text,
        ),
        "revoke": Param(
            False,
            type="boolean",
            title="Revoke",
            description="Later runs ask for the answers of what is taken back again, and pay for them.",
        ),
        "reason": Param(
            None, maxLength=500, title="Reason", description="Kept, and said to runs that meet the hold.", **text
        ),
        "dry_run": Param(False, type="boolean", title="Dry run", description="Only log what would be done."),
    }

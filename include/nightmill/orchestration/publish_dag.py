"""The DAG `nightmill_publish`: shows a preview to readers, through the same gates as a job's own DAG."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, AssetAlias, Param, chain, get_current_context, get_parsing_context, task

from nightmill.domain.errors import ConfigError
from nightmill.jobs import job_folders
from nightmill.jobs.settings.job import Job
from nightmill.orchestration import tasks
from nightmill.orchestration.failing import as_airflow_failure
from nightmill.orchestration.retries import PATIENT

NAME = "nightmill_publish"
START = datetime(2025, 1, 1, tzinfo=UTC)
_DOC = """Shows a preview (a batch in STAGED) to everybody who reads its view. Its gates are asked again, with today's
checks and thresholds; what was frozen, answered and paid stays as it is.

`python -m nightmill publish --batch N` triggers it too."""


def publish_dag(built_in: Path) -> DAG:
    """The DAG over all job folders: their views are its outlets, and it asks a person if one of the jobs does."""
    jobs, folder = _jobs(built_in), str(built_in)
    with DAG(
        NAME,
        description="Show a preview to readers",
        doc_md=_DOC,
        schedule=None,
        is_paused_upon_creation=False,  # it runs only when a person triggers it
        start_date=START,
        catchup=False,
        tags=["nightmill", "operations"],
        params=_form(),
        default_args={"owner": "nightmill", **PATIENT},
        auto_register=False,
    ) as dag:
        batch_id = task(take_up)()
        outlets = [AssetAlias(tasks.asset_name(view)) for view in sorted({job.publish.view for job in jobs})]
        chain(
            batch_id,
            task(check_staging)(folder, batch_id),
            task(compare)(folder, batch_id),
            _approve(jobs, folder, batch_id),
            task(outlets=outlets)(publish)(folder, batch_id),
            task(tasks.report)(batch_id),
        )
    return dag


def _jobs(built_in: Path) -> list[Job]:
    """Read where they decide something: while the file is parsed, and for the tasks of this DAG that the jobs shape."""
    running = get_parsing_context()
    shaped = running.dag_id == NAME and running.task_id in ("approve", "publish")
    return job_folders.readable(built_in) if running.dag_id is None or shaped else []


def _approve(jobs: list[Job], folder: str, batch_id: Any) -> Any:
    if all(job.approve is None for job in jobs):
        return task(approve)(folder, batch_id)
    from nightmill.orchestration.approval import ApprovalOfPreview, form  # slow, and few jobs need it

    return ApprovalOfPreview(task_id="approve", folder=folder, batch_id=batch_id, params=form())


def _form() -> dict[str, Param]:
    return {
        "batch": Param(type="integer", minimum=1, title="Batch", description="The preview: a batch in STAGED."),
        "confirm_narrowed": Param(
            False,
            type="boolean",
            title="Confirm narrowed",
            description="A preview with a limit, or with a filter of another value than declared, is refused without: "
            "the view would show these rows and no others.",
        ),
        "note": Param(
            None, type=["null", "string"], maxLength=500, title="Note", description="Why; kept in the batch's history."
        ),
    }


def folder_of(built_in: str, batch_id: int) -> Path:
    """The job folder of a batch. Raises ConfigError where it is gone."""
    from nightmill.orchestration.connections import environment
    from nightmill.storage import batches

    with environment().ledger() as conn:
        job = batches.get(conn, batch_id).job
    found = job_folders.find(job_folders.roots(Path(built_in))).folders
    if job not in found:
        raise ConfigError(
            f"The job folder {job} is gone. It says which gates batch {batch_id} must pass.",
            "Put the folder back, at least until this run has ended; then clear the task.",
        )
    return found[job]


def take_up() -> int:
    """Returns the batch id."""
    from nightmill.operations import show_preview
    from nightmill.orchestration.connections import environment

    context = get_current_context()
    params, run = context["params"], context["dag_run"]
    wish = show_preview.Wish(
        batch_id=int(params["batch"]),
        run_id=run.run_id,
        by=getattr(run, "triggering_user_name", None) or NAME,
        confirm_narrowed=bool(params["confirm_narrowed"]),
        note=params["note"],
    )
    with as_airflow_failure():
        return show_preview.run(environment(), wish).batch_id


def check_staging(built_in: str, batch_id: int) -> None:
    """Great Expectations on the staging rows."""
    tasks.check_staging(_folder(built_in, batch_id), batch_id)


def compare(built_in: str, batch_id: int) -> None:
    """The batch against what readers see now."""
    tasks.compare(_folder(built_in, batch_id), batch_id)


def approve(built_in: str, batch_id: int) -> None:
    """The approval of a job that asks nobody."""
    tasks.approve(_folder(built_in, batch_id), batch_id)


def publish(built_in: str, batch_id: int) -> None:
    """Flip the view, then emit its asset event."""
    tasks.publish(_folder(built_in, batch_id), batch_id)


def _folder(built_in: str, batch_id: int) -> str:
    with as_airflow_failure():
        return str(folder_of(built_in, batch_id))

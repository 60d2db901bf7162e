"""The operations DAGs of cancelling and maintenance. Wiring only: every decision is a stage's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Param, chain, get_current_context, task

from nightmill.domain.maintenance import Sweep, refuse_failed
from nightmill.orchestration.failing import as_airflow_failure, refuse_cleared
from nightmill.orchestration.retries import PATIENT

START = datetime(2025, 1, 1, tzinfo=UTC)
TAGS = ["nightmill", "operations"]
EVERY = "*/15 * * * *"
SWEEP_LIMIT = timedelta(minutes=30)
VERDICT = "every_sweep_was_done"
DEFAULTS = {"owner": "nightmill", "retries": 2, "retry_delay": timedelta(seconds=10)}


def cancel_dag() -> DAG:
    """nightmill_cancel: one durable request, then a first look at what was sent."""
    with DAG(
        "nightmill_cancel",
        description="Cancels a batch. What it had sent is stopped, and its answers are kept for later runs.",
        schedule=None,
        is_paused_upon_creation=False,  # it runs only when a person triggers it
        start_date=START,
        catchup=False,
        tags=TAGS,
        params=_cancel_form(),
        default_args={"owner": "nightmill", **PATIENT},
        auto_register=False,
    ) as dag:
        task(task_id="wind_down", execution_timeout=SWEEP_LIMIT)(wind_down)(task(task_id="request")(request_cancel)())
    return dag


def _cancel_form() -> dict[str, Param]:
    words: dict[str, Any] = {"type": ["null", "string"], "maxLength": 500}
    return {
        "batch": Param(None, type=["null", "integer"], minimum=1, title="Batch", description="Its number."),
        "dag_id": Param(None, title="DAG", description="Without a batch: the DAG, such as nightmill_my_job.", **words),
        "run_id": Param(None, title="Run", description="Without a batch: the run's id.", **words),
        "reason": Param(None, title="Reason", description="Kept with the batch.", **words),
    }


def request_cancel() -> int:
    """Returns the batch id."""
    from nightmill.operations import cancel
    from nightmill.orchestration.connections import environment

    context = get_current_context()
    refuse_cleared(context)
    params, who = context["params"], getattr(context["dag_run"], "triggering_user_name", None)
    target = cancel.Target(params["batch"], params["dag_id"], params["run_id"])
    reason = f"cancelled by {who or 'nightmill_cancel'}"  # first: nothing that the form says can stand before it
    if params["reason"]:
        reason += f": {params['reason']}"
    with as_airflow_failure():
        return cancel.run(environment(), target, reason).batch.batch_id


def wind_down(batch_id: int) -> None:
    """Ask the provider to stop what was sent. Maintenance collects it; what is finished already is collected now."""
    import logging

    from nightmill.orchestration.connections import environment
    from nightmill.upkeep import wind_down as stage

    with as_airflow_failure():
        for action in stage.run(environment(), {}, batch_id=batch_id):
            logging.getLogger(__name__).info("%s", action)


def maintenance_dag(built_in: Path) -> DAG:
    """nightmill_maintenance: the sweeps one after the other. One that fails stops none of the others, and the run has
    failed then."""
    with DAG(
        "nightmill_maintenance",
        description="Winds down what was cancelled, looks for what hangs, and deletes what is past its time.",
        schedule=EVERY,
        start_date=START,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,
        tags=TAGS,
        params={"dry_run": Param(False, type="boolean", title="Dry run", description="Say only what would be done.")},
        default_args=DEFAULTS | {"execution_timeout": SWEEP_LIMIT, "trigger_rule": "all_done"},
        auto_register=False,
    ) as dag:
        sweeps = [task(task_id=str(one))(sweep)(str(one), str(built_in)) for one in Sweep]
        chain(*sweeps)
        # The last task decides what the run is: without this one a run would be green whose last sweep alone was done.
        sweeps >> EmptyOperator(task_id=VERDICT, trigger_rule="all_success")
    return dag


def sweep(name: str, built_in: str) -> None:
    """One sweep; its log says what was done."""
    from nightmill.domain.errors import ConfigError
    from nightmill.orchestration.connections import environment, lookup
    from nightmill.services.connections import OWNER
    from nightmill.upkeep import maintenance

    dry_run = bool(get_current_context()["params"]["dry_run"])
    with as_airflow_failure():
        owner = None
        if name in (Sweep.MERGING, Sweep.RETENTION):
            try:
                owner = lookup(OWNER).database_url()
            except ConfigError:
                owner = None
        jobs = maintenance.live_jobs(Path(built_in))
        refuse_failed(maintenance.run(environment(), jobs, owner, Sweep(name), dry_run=dry_run))

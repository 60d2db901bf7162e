"""A person who marks a run as failed asks for its batch to be cancelled; a run that fails by itself does not. A run of
nightmill_publish only gives its preview up.

How the two are told apart (apache-airflow-core 3.3.2, pinned by a test): where a person sets a run's state, in the UI
or by REST, the API server calls the hook with the message below. Where a run fails by itself the scheduler calls it,
with `task_failure`, `all_tasks_deadlocked` or `timed_out`. Clearing calls no hook of this kind.
"""

from __future__ import annotations

import logging
from typing import Any

from airflow.listeners import hookimpl

log = logging.getLogger(__name__)

BY_A_PERSON = "Dag Run's state was manually set to `failed`."
OURS = "nightmill_"
PUBLISH = "nightmill_publish"  # its batch belongs to another run
REASON = "its run was marked as failed"


@hookimpl  # type: ignore[untyped-decorator]
def on_dag_run_failed(dag_run: Any, msg: str) -> None:
    """Request the cancel. It calls no provider, so the click does not wait for one; maintenance does the rest."""
    if msg != BY_A_PERSON or not dag_run.dag_id.startswith(OURS):
        return
    from nightmill.domain.errors import NightmillError, Terminal
    from nightmill.operations import cancel, show_preview
    from nightmill.orchestration.connections import environment

    marked = f"Run {dag_run.run_id} of {dag_run.dag_id} was marked as failed"
    try:
        env = environment()
        try:
            if dag_run.dag_id == PUBLISH:
                batch = show_preview.give_up(env, dag_run.run_id)
                log.info("%s: %s", marked, f"batch {batch.batch_id} is a preview again" if batch else "it had no batch")
                return
            done = cancel.run(env, cancel.Target(dag_id=dag_run.dag_id, run_id=dag_run.run_id), REASON)
            log.info("%s: batch %s is cancelled", marked, done.batch.batch_id)
        except Terminal as fault:  # it has no batch, or that one has ended
            log.info("%s: %s", marked, fault.cause)
    except NightmillError as fault:
        log.error("%s, but its batch was not cancelled: %s Then trigger nightmill_cancel.", marked, fault)

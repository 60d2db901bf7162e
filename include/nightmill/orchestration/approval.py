"""approve as Airflow's human-in-the-loop task, for jobs that ask a person. It waits without a worker or a triggerer.

Only DAGs that need it import this module: the operator behind it takes a quarter of a second.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.exceptions import HITLTimeoutError
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Context, Param

from nightmill.orchestration.failing import as_airflow_failure

if TYPE_CHECKING:
    from nightmill.gates.port import Gate, Verdict, Waiting
    from nightmill.jobs.contract import JobDefinition

YES, NO = "Approve", "Reject"


def form() -> dict[str, Param]:
    """What is asked beside yes and no. Handed in from outside: Params that an operator makes itself are not stored."""
    schema: dict[str, Any] = {"type": ["null", "string"], "maxLength": 500}
    return {"reason": Param(None, title="Reason", description="Kept with the batch.", **schema)}


class Approval(HITLOperator):
    """Asks whether a batch may be shown. The verdict is recorded in the ledger: publish reads it there, so marking this
    task as success opens nothing. `folder` is read anew each time."""

    template_fields = ("folder", "batch_id")

    def __init__(self, *, folder: str, batch_id: int, **kwargs: Any) -> None:
        super().__init__(subject="Show this batch?", options=[YES, NO], **kwargs)
        self.folder = folder
        self.batch_id = batch_id

    def execute(self, context: Context) -> None:
        """A first run, a retry, or a task that somebody cleared."""
        from nightmill.gates import registry
        from nightmill.gates.port import Waiting

        verdict = self._settle(registry.approval(context["ti"].max_tries))
        if isinstance(verdict, Waiting):
            self._prepare(verdict)
            super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> None:
        """Somebody answered, or nobody did in time."""
        from nightmill.gates import approve, registry

        try:
            given = super().execute_complete(context, event)
        except HITLTimeoutError:
            self._settle(registry.approval(0))  # which finds the time over
            return
        user = given["responded_by_user"]
        with as_airflow_failure():
            self._refuse_strangers(user)
        answer = approve.Answer(
            approved=given["chosen_options"] == [YES],
            by=user["name"],
            at=given["responded_at"],
            reason=given["params_input"].get("reason") or None,
        )
        self._settle(approve.answered(answer))

    def _refuse_strangers(self, user: Any) -> None:
        """Airflow asks those whom its first question named, whatever job.yaml says since."""
        from nightmill.domain.errors import Terminal

        settings = self._live().job.approve
        users = settings.assigned_users if settings else ()
        if users and user["id"] not in users:
            raise Terminal(
                f"{user['name']} is not one of approve.assigned_users: the answer does not count.",
                "Clear approve, and let one of them answer.",
            )

    def _settle(self, gate: Gate) -> Verdict | None:
        from nightmill.gates import driver
        from nightmill.orchestration.connections import environment

        with as_airflow_failure():
            return driver.run(environment(), self._live(), int(self.batch_id), gate)

    def _live(self) -> JobDefinition:
        """The job folder as it is now."""
        from nightmill.jobs import job_folders

        return job_folders.read(Path(self.folder))

    def _prepare(self, waiting: Waiting) -> None:
        """Fill in what Airflow shows, as the job asks for now. Airflow (3.3.2) keeps the first question of a task:
        where it was cleared, the log and the console tell what is asked now. So no default is left to it: it would be
        that of the first question."""
        from nightmill.gates import approve, question_text
        from nightmill.orchestration.connections import environment
        from nightmill.orchestration.links import page_of
        from nightmill.storage import batches

        with as_airflow_failure():
            env = environment()
        with as_airflow_failure(), env.ledger() as conn:
            batch = batches.get(conn, int(self.batch_id))
            asked = question_text.of(conn, batch, waiting, page_of(batch.dag_id, batch.run_id))
            settings = self._live().job.approve
        self.subject, self.body = asked.subject, asked.body
        for line in asked.body.splitlines():
            self.log.info("%s", line)
        self.response_timeout = max(approve.left(waiting, env.now()), timedelta(seconds=1))
        users = settings.assigned_users if settings else ()
        self.assigned_users = [{"id": one, "name": one} for one in users] or None


class ApprovalOfPreview(Approval):
    """The same for a batch whose job is known only when the task runs; `folder` is that of the built-in jobs."""

    def _live(self) -> JobDefinition:
        from nightmill.jobs import job_folders
        from nightmill.orchestration.publish_dag import folder_of

        return job_folders.read(folder_of(self.folder, int(self.batch_id)))

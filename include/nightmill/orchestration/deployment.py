"""This Airflow's own id: an Airflow variable, because Airflow has none that its workers know.

It lies in the metadata database, so every worker has the same one, and a restored Airflow is still itself. The first
task that finds none makes it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from airflow.sdk import Variable

from nightmill.storage import deployments
from nightmill.storage.deployments import VARIABLE
from nightmill.storage.session import Connection

_DESCRIPTION = (
    "Tells nightmill's ledger which Airflow this is. Delete it in a copy of an Airflow, never in the Airflow itself."
)


@dataclass
class ThisAirflow:
    """Admits connections to the ledger where the ledger is this Airflow's."""

    _known: str | None = None

    def admit(self, conn: Connection) -> None:
        """Pin a new ledger to this Airflow. Raises ConfigError where it belongs to another one."""
        conn.autocommit = True
        if self.deployment_id is None and in_a_task():
            with deployments.one_at_a_time(conn):
                if self.deployment_id is None:
                    self._known = f"airflow-{secrets.token_hex(8)}"
                    Variable.set(VARIABLE, self._known, description=_DESCRIPTION)
        mine = self.deployment_id
        if mine is None:
            deployments.refuse_another(conn, None)
        else:
            deployments.pin(conn, mine)
        conn.autocommit = False

    @property
    def deployment_id(self) -> str | None:
        """None where no task has made it yet."""
        if self._known is None:
            self._known = Variable.get(VARIABLE, default=None)
        return self._known


def in_a_task() -> bool:
    """Whether this process may write variables: the API server and the scheduler, which call listeners, may not."""
    from airflow.sdk.execution_time import task_runner

    return getattr(task_runner, "SUPERVISOR_COMMS", None) is not None

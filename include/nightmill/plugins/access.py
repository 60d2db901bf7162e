"""Asks in the API server who may cancel or replay a job's batch. See docs/explanation/trust.md."""

from airflow.plugins_manager import AirflowPlugin

from nightmill.console.trigger_access import TriggerAccess


class NightmillAccess(AirflowPlugin):
    """Registers the middleware, nothing else."""

    name = "nightmill_access"
    fastapi_root_middlewares = [{"middleware": TriggerAccess, "args": [], "kwargs": {}, "name": name}]  # noqa: RUF012

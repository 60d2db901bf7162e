"""Asks who may cancel or replay a job's batch where Airflow knows it: in the API server. See docs/trust.md."""

from airflow.plugins_manager import AirflowPlugin

from nightmill.console.trigger_access import TriggerAccess


class NightmillAccess(AirflowPlugin):
    """Registers the middleware, nothing else."""

    name = "nightmill_access"
    fastapi_root_middlewares = [{"middleware": TriggerAccess, "args": [], "kwargs": {}, "name": name}]  # noqa: RUF012

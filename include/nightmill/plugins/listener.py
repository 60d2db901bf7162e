"""Makes marking a run as failed a cancel request. See docs/guides/operations.md."""

from airflow.plugins_manager import AirflowPlugin

from nightmill.orchestration import listener


class NightmillListener(AirflowPlugin):
    """Registers the listener, nothing else."""

    name = "nightmill_listener"
    listeners = [listener]  # noqa: RUF012

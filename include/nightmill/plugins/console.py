"""Adds the console, the pages that links of nightmill's tasks open. See docs/guides/operations.md."""

from airflow.plugins_manager import AirflowPlugin

from nightmill.console.mount import mounted


class NightmillConsole(AirflowPlugin):
    """Registers the app, nothing else."""

    name = "nightmill_console"
    fastapi_apps = [mounted()]  # noqa: RUF012

"""Asks in the API server who may cancel or replay a job's batch. See docs/explanation/trust.md."""

from nightmill.plugins import by_entry_point

if not by_entry_point("nightmill_access"):
    from nightmill.plugins.access import NightmillAccess  # noqa: F401 (Airflow looks for plugins among the names of this file)

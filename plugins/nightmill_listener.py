"""Makes marking a run as failed a cancel request. See docs/guides/operations.md."""

from nightmill.plugins import by_entry_point

if not by_entry_point("nightmill_listener"):
    from nightmill.plugins.listener import NightmillListener  # noqa: F401 (Airflow looks for plugins among the names of this file)

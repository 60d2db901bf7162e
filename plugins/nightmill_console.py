"""Adds the console, the pages that links of nightmill's tasks open. See docs/guides/operations.md."""

from nightmill.plugins import by_entry_point

if not by_entry_point("nightmill_console"):
    from nightmill.plugins.console import NightmillConsole  # noqa: F401 (Airflow looks for plugins among the names of this file)

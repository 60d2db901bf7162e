"""What nightmill adds to Airflow by plugins: entry points in a wheel, plugins/ in a checkout."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution

GROUP = "airflow.plugins"


def by_entry_point(name: str) -> bool:
    """Whether the installed nightmill registers this plugin. Airflow would find it a second time in a plugins folder,
    and show that as an import error."""
    try:
        return any(one.group == GROUP and one.name == name for one in distribution("nightmill").entry_points)
    except PackageNotFoundError:
        return False

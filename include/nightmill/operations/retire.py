"""retire: drops what a job shows and showed, when nobody reads it any more. Not a task: a person's command."""

from __future__ import annotations

from nightmill.storage import retiring
from nightmill.storage.session import connect


def look(owner_dsn: str, job: str) -> list[str]:
    """The views that would go. Raises ConfigError and Terminal where the job cannot be retired."""
    with connect(owner_dsn, application="nightmill retire") as conn:
        return retiring.views_of(conn, job)


def run(owner_dsn: str, job: str, by: str) -> list[str]:
    """Drop all views of a job with their rows, or none of them."""
    with connect(owner_dsn, application="nightmill retire") as conn:
        found = retiring.views_of(conn, job)
        for view in found:
            retiring.drop(conn, view, by)
        return found

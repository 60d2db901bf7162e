"""Retiring a job: its views and rows go, what it paid stays in the ledger."""

from __future__ import annotations

from psycopg import errors
from psycopg import sql as composed

from nightmill.domain.errors import ConfigError, Terminal
from nightmill.domain.suggestions import aside
from nightmill.storage import sql
from nightmill.storage.session import Connection

LOCK_TIMEOUT = "5s"


def views_of(conn: Connection, job: str) -> list[str]:
    """The views of a job. Raises ConfigError for one that has none, Terminal while one of its batches lives."""
    found = [row[0] for row in conn.execute(sql.text("view/of_job"), {"job": job}).fetchall()]
    if not found:
        jobs = {row[0] for row in conn.execute("select job from nightmill.view_definition").fetchall()}
        raise ConfigError(
            f"No job {job!r} has a view in the ledger{aside(job, jobs)}.", "Name it as its folder is named."
        )
    live = [row[0] for row in conn.execute(sql.text("batch/open_of_job"), {"job": job}).fetchall()]
    if live:
        raise Terminal(
            f"Job {job} has batches that have not ended: {', '.join(map(str, live[:5]))}.",
            "Wait for them, or cancel each: python -m nightmill cancel --batch N. Pause the job's DAG first.",
        )
    return found


def drop(conn: Connection, view: str, by: str) -> None:
    """Drop a view with its rows, in the caller's transaction. `conn` must be the owner's. Raises Terminal where
    something depends on the view, ConfigError while readers keep it busy."""
    conn.execute("set local role nightmill_owner")
    conn.execute("select set_config('lock_timeout', %s, true)", (LOCK_TIMEOUT,))
    try:
        _drop_view(conn, view)
        conn.execute(composed.SQL("drop table if exists {}").format(sql.rows_table(view)))
    except errors.LockNotAvailable as fault:
        raise ConfigError(f"Readers keep results.{view} busy.", "Run retire again at a quieter time.") from fault
    except errors.DependentObjectsStillExist as fault:
        detail = "; ".join((fault.diag.message_detail or "").splitlines())
        raise Terminal(
            f"results.{view} cannot be dropped: {detail}.", "Drop that first, then run retire again."
        ) from fault
    conn.execute(sql.text("view/forget"), {"view_name": view, "retired_by": by})


def _drop_view(conn: Connection, view: str) -> None:
    """The view belongs to a role of its own, and only the owner of its schema can drop it beside that role."""
    conn.execute(composed.SQL("drop view if exists {}").format(composed.Identifier("results", view)))

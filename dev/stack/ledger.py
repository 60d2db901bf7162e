"""The database `nightmill` of the local stack: brought up to date whenever the stack starts."""

from __future__ import annotations

from pathlib import Path

from dev.stack.airflow_settings import LEDGER_DATABASE
from dev.stack.postgres import Server
from nightmill.operations import apply
from nightmill.operations.apply import Applied
from nightmill.storage.migrate import init_db


def prepare_ledger(server: Server, dags_folder: Path) -> list[Applied]:
    """Apply outstanding migrations and the job folders' views, as the administrator (migrations make roles).

    Returns what came of each job folder; a broken one stops no other, and Airflow shows it as an import error.
    """
    dsn = server.dsn(LEDGER_DATABASE)
    init_db(dsn)
    return apply.run(dsn, dags_folder / "jobs")

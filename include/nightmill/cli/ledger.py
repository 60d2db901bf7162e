"""init-db and apply: what the owner of the ledger does once, and after each change of a job folder."""

from __future__ import annotations

import argparse
import json
from typing import Any

from nightmill.domain.errors import NightmillError
from nightmill.operations import apply as operation
from nightmill.operations.apply import Applied
from nightmill.services.connections import OWNER, from_variables
from nightmill.storage import migrate


def init_db(arguments: argparse.Namespace) -> int:
    """Bring the ledger to this version."""
    ran = migrate.init_db(arguments.dsn or from_variables(OWNER).database_url())
    _say(arguments, {"migrations": ran}, "\n".join(f"applied {name}" for name in ran) or "up to date")
    return 0


def apply(arguments: argparse.Namespace) -> int:
    """Make tables and views of all job folders."""
    done = operation.run(from_variables(OWNER).database_url(), arguments.jobs)
    rows = [
        {
            "job": one.job, "folder": str(one.folder), "view": one.view, "outcome": one.outcome, "told": one.told,
            "fault": _text(one.fault),
        }
        for one in done
    ]  # fmt: skip
    text = "\n".join(f"{one.job}: {_came_of(one)}" for one in done)
    _say(arguments, rows, text or "no job folders found")
    return 1 if any(one.fault for one in done) else 0


def _came_of(one: Applied) -> str:
    if one.told:
        return f"{one.outcome}: {one.told}"
    return f"{one.outcome} results.{one.view}" if one.view else f"{one.outcome}, {_text(one.fault)}"


def _say(arguments: argparse.Namespace, value: Any, text: str) -> None:
    print(json.dumps(value) if arguments.json else text)


def _text(fault: NightmillError | None) -> str | None:
    return str(fault) if fault is not None else None

"""apply: makes the tables and views of all job folders, with the owner's connection. Not a task: a person's command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psycopg

from nightmill.domain.errors import ConfigError, NightmillError
from nightmill.storage import job_folders, views
from nightmill.storage.ledger import connect
from nightmill.validators.definition import check_definition


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of one job folder: `created`, `extended`, `unchanged`, or `broken` with its fault."""

    job: str
    folder: Path
    view: str | None
    outcome: str
    fault: NightmillError | None = None


def run(owner_dsn: str, built_in: Path) -> list[Applied]:
    """Apply every job folder below `built_in` and NIGHTMILL_JOBS_PATH, each in a transaction of its own. One broken
    folder stops no other."""
    found = job_folders.find(job_folders.roots(built_in))
    done = [Applied("(folders)", built_in, None, "broken", fault) for fault in found.faults]
    for name, folder in found.folders.items():
        try:
            definition = job_folders.read(folder)
            check_definition(definition)
            with connect(owner_dsn, application="nightmill apply") as conn:
                outcome = views.apply(conn, definition)
            done.append(Applied(name, folder, definition.job.publish.view, outcome))
        except NightmillError as fault:
            done.append(Applied(name, folder, None, "broken", fault))
        except Exception as fault:
            if _of_the_database(fault):  # every other folder would end like this one
                raise
            done.append(Applied(name, folder, None, "broken", _unforeseen(folder, fault)))
    return done


def _of_the_database(fault: Exception) -> bool:
    """Whether the server is gone, out of room or shutting down."""
    return isinstance(fault, psycopg.OperationalError) and (fault.sqlstate or "08")[:2] in ("08", "53", "57")


def _unforeseen(folder: Path, fault: Exception) -> ConfigError:
    state = f", SQLSTATE {fault.sqlstate}" if isinstance(fault, psycopg.Error) and fault.sqlstate else ""
    return ConfigError(
        f"{folder}: its table and view cannot be made ({type(fault).__name__}{state}).",
        "Compare the fields of output.py with docs/job_reference.md: their number, names and types.",
    )

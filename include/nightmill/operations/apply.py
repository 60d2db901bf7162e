"""apply: makes the tables and views of all job folders, with the owner's connection. Not a task: a person's command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nightmill.domain.errors import ConfigError, NightmillError, Terminal
from nightmill.jobs import job_folders
from nightmill.jobs.check.definition import check_definition
from nightmill.storage import views
from nightmill.storage.session import Connection, DatabaseError, InsufficientPrivilege, OperationalError, connect

_SERVER_FAULTS = ("08", "53", "57")  # SQLSTATE classes: the server is gone, full or shutting down


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of one job folder: `created`, `extended`, `redefined`, `described`, `unchanged`, or `broken` with its
    fault; `orphaned` is a view that has none any more, with what it shows and what to do."""

    job: str
    folder: Path
    view: str | None
    outcome: str
    fault: NightmillError | None = None
    told: str = ""


def run(owner_dsn: str, built_in: Path) -> list[Applied]:
    """Apply every job folder below `built_in` and NIGHTMILL_JOBS_PATH, each in a transaction of its own. One broken
    folder stops no other. Views whose job has no folder any more get what a view must have."""
    found = job_folders.find(job_folders.roots(built_in))
    done = [Applied("(folders)", built_in, None, "broken", fault) for fault in found.faults]
    for name, folder in found.folders.items():
        try:
            definition = job_folders.read(folder)
            check_definition(definition)
            with _owner(owner_dsn) as conn:
                outcome = views.apply(conn, definition, found.folders.keys())
            done.append(Applied(name, folder, definition.job.publish.view, outcome))
        except NightmillError as fault:
            done.append(Applied(name, folder, None, "broken", fault))
        except Exception as fault:
            done.append(Applied(name, folder, None, "broken", _unforeseen(folder, fault)))
    return done + _without_folder(owner_dsn, built_in, set(found.folders))


def _without_folder(owner_dsn: str, built_in: Path, folders: set[str]) -> list[Applied]:
    try:
        with _owner(owner_dsn) as conn:
            left = [(view, job) for view, job in views.unprotected(conn).items() if job not in folders]
            orphans = views.orphans(conn, folders)
    except NightmillError as fault:
        return [Applied("(views)", built_in, None, "broken", fault)]
    done = []
    for view, job in left:
        try:
            with _owner(owner_dsn) as conn:
                views.protect(conn, view)
            done.append(Applied(job, built_in, view, "redefined"))
        except NightmillError as fault:
            done.append(Applied(job, built_in, None, "broken", fault))
        except DatabaseError as fault:
            done.append(Applied(job, built_in, None, "broken", _unforeseen(built_in, fault)))
    return done + [
        Applied(one.job, built_in, one.view_name, "orphaned", None, f"{one}. {views.renamed(one.view_name, one.job)}")
        for one in orphans
    ]


@contextmanager
def _owner(dsn: str) -> Iterator[Connection]:
    """One transaction of the owner's. What the database refuses is the fault of one folder, not of all."""
    try:
        with connect(dsn, application="nightmill apply") as conn:
            yield conn
    except InsufficientPrivilege as fault:
        raise ConfigError(
            f"The login may not apply job folders: {fault.diag.message_primary}.",
            "Use a login that is a member of nightmill_owner, in the connection nightmill_owner.",
        ) from fault
    except OperationalError as fault:
        if (fault.sqlstate or "08")[:2] not in _SERVER_FAULTS:
            raise
        raise Terminal(
            f"The database refused it ({type(fault).__name__}): {fault.diag.message_primary or 'connection lost'}.",
            "Mend what it names, then run apply again; `python -m nightmill doctor` looks at the ledger.",
        ) from fault


def _unforeseen(folder: Path, fault: Exception) -> ConfigError:
    state = f", SQLSTATE {fault.sqlstate}" if isinstance(fault, DatabaseError) and fault.sqlstate else ""
    return ConfigError(
        f"{folder}: its table and view cannot be made ({type(fault).__name__}{state}).",
        "Compare the fields of output.py with docs/reference/job_reference.md: their number, names and types.",
    )

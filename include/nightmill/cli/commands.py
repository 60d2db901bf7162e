"""The commands for people and scripts. Connections come from AIRFLOW_CONN_* variables, as Airflow reads them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nightmill.connections import OWNER, environment_of, from_variables
from nightmill.domain.errors import NightmillError

DEFAULT_JOBS = Path("dags/jobs")


def main(argv: Sequence[str]) -> int:
    """Run one command. 0 = done; 1 = it could not be done, with cause and remedy on stderr; 2 = wrong usage."""
    if argv[:1] == ["simulator"]:
        from nightmill.simulator.server import main as simulator

        return simulator(list(argv[1:]))
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except NightmillError as fault:
        print(f"error: {fault.cause}\nremedy: {fault.remedy}", file=sys.stderr)
        return 1


def init_db(arguments: argparse.Namespace) -> int:
    """Bring the ledger to this version."""
    from nightmill.storage import migrate

    ran = migrate.init_db(arguments.dsn or from_variables(OWNER).database_url())
    _say(arguments, {"migrations": ran}, "\n".join(f"applied {name}" for name in ran) or "up to date")
    return 0


def apply(arguments: argparse.Namespace) -> int:
    """Make tables and views of all job folders."""
    from nightmill.stages import apply as stage

    done = stage.run(from_variables(OWNER).database_url(), arguments.jobs)
    rows = [
        {"job": one.job, "folder": str(one.folder), "view": one.view, "outcome": one.outcome, "fault": _text(one.fault)}
        for one in done
    ]
    text = "\n".join(
        f"{one.job}: {one.outcome}" + (f" results.{one.view}" if one.view else f", {_text(one.fault)}") for one in done
    )
    _say(arguments, rows, text or "no job folders found")
    return 1 if any(one.fault for one in done) else 0


def validate(arguments: argparse.Namespace) -> int:
    """Check job folders without touching any service."""
    from nightmill.cli import validate as command

    return command.run(arguments.jobs, arguments.json)


def doctor(arguments: argparse.Namespace) -> int:
    """Look at everything a run needs."""
    from nightmill.cli import doctor as command

    return command.run(arguments)


def status(arguments: argparse.Namespace) -> int:
    """The newest batch of each job, or one batch with its report."""
    from nightmill.stages import report
    from nightmill.storage import batches

    env = environment_of(os.environ)
    if arguments.batch is not None:
        print(report.render(report.build(env, arguments.batch)))
        return 0
    with env.ledger() as conn:
        newest = batches.newest_per_job(conn)
    rows = [
        {"job": one.job, "batch_id": one.batch_id, "state": str(one.state), "reason": one.state_reason,
         "items": one.item_count, "run_id": one.run_id}
        for one in newest
    ]  # fmt: skip
    text = "\n".join(
        f"{row['job']}: batch {row['batch_id']} {row['state']} ({row['reason']}), {row['items']} items" for row in rows
    )
    _say(arguments, rows, text or "no batches")
    return 0


def _say(arguments: argparse.Namespace, value: Any, text: str) -> None:
    print(json.dumps(value) if arguments.json else text)


def _text(fault: NightmillError | None) -> str | None:
    return str(fault) if fault is not None else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m nightmill", description=__doc__)
    commands = parser.add_subparsers(required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON")
    jobs = argparse.ArgumentParser(add_help=False)
    jobs.add_argument(
        "--jobs", type=Path, default=DEFAULT_JOBS, help="folder of job folders; NIGHTMILL_JOBS_PATH is searched too"
    )
    one = commands.add_parser("init-db", parents=[common], help="create or migrate the ledger database")
    one.add_argument("--dsn", help=f"of a login with CREATEROLE; default: the connection {OWNER}")
    one.set_defaults(run=init_db)
    one = commands.add_parser("apply", parents=[common, jobs], help="create the tables and views of all jobs")
    one.set_defaults(run=apply)
    one = commands.add_parser("validate", parents=[common, jobs], help="check job folders")
    one.set_defaults(run=validate)
    one = commands.add_parser("doctor", parents=[common, jobs], help="check everything a run needs, with remedies")
    one.set_defaults(run=doctor)
    one = commands.add_parser("status", parents=[common], help="the newest batch of each job")
    one.add_argument("--batch", type=int, help="the completion report of this batch")
    one.set_defaults(run=status)
    commands.add_parser("simulator", help="run the local provider (see its own --help)")
    return parser

"""The commands for people and scripts. Connections come from AIRFLOW_CONN_* variables, as Airflow reads them."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from typing import Any

from nightmill.cli import view_commands
from nightmill.cli.arguments import DEFAULT_JOBS, Command, choose_dead_letters, describe_run, folder, number, runs
from nightmill.domain.maintenance import Sweep
from nightmill.services.connections import OWNER
from nightmill.services.exit_codes import exit_code


def main(argv: Sequence[str]) -> int:
    """Run one command. 0 = done; 1 = it could not be done, with cause and remedy on stderr; 2 = wrong usage; 130 =
    interrupted."""
    for stream in (sys.stdout, sys.stderr):  # names of folders and files can be no UTF-8
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return exit_code(lambda: _run(_readable(argv)))


def _run(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(argv)
    return int(arguments.run(arguments))


def _readable(argv: Sequence[str]) -> Sequence[str]:
    """The arguments; those that are no text are shown with replacement characters, and fit nothing."""
    return [one.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for one in argv]


def _parser() -> argparse.ArgumentParser:
    installed = sys.argv[0].endswith("nightmill")  # a checkout has no console script
    parser = Command(prog="nightmill" if installed else "python -m nightmill", description=__doc__)
    commands = parser.add_subparsers(required=True, parser_class=Command)
    common = Command(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON")
    jobs = Command(add_help=False)
    jobs.add_argument(
        "--jobs", type=folder, default=DEFAULT_JOBS, help="folder of job folders; NIGHTMILL_JOBS_PATH is searched too"
    )
    _set_up(commands, common, jobs)
    _look(commands, common, jobs)
    _operations(commands, common, jobs)
    _add_maintenance(commands, common, jobs)
    view_commands.add(commands, common)
    return parser


def _set_up(commands: Any, common: Command, jobs: Command) -> None:
    one = commands.add_parser("init-db", parents=[common], help="create or migrate the ledger database")
    one.add_argument("--dsn", help=f"of a login with CREATEROLE; default: the connection {OWNER}")
    one.set_defaults(run=runs("ledger", "init_db"))
    one = commands.add_parser("apply", parents=[common, jobs], help="create the tables and views of all jobs")
    one.set_defaults(run=runs("ledger", "apply"))
    one = commands.add_parser("validate", parents=[common, jobs], help="check job folders")
    one.add_argument("names", nargs="*", metavar="JOB", help="the names of folders; without any: all of them")
    one.set_defaults(run=runs("validate"))
    one = commands.add_parser("doctor", parents=[common, jobs], help="check everything a run needs, with remedies")
    one.set_defaults(run=runs("doctor"))


def _look(commands: Any, common: Command, jobs: Command) -> None:
    one = commands.add_parser(
        "estimate", parents=[common, jobs], help="what a run of a job would send and cost; nothing is written or sent"
    )
    describe_run(one)
    one.set_defaults(run=runs("estimate"))
    one = commands.add_parser("status", parents=[common], help="every open batch and the newest closed one of each job")
    which = one.add_mutually_exclusive_group()
    which.add_argument("--batch", type=number, help="this batch only; with its completion report once it has ended")
    which.add_argument("--job", help="the batches of this job only")
    one.add_argument("--watch", action="store_true", help="a live view; a line per change where there is no terminal")
    one.set_defaults(run=runs("status"))
    one = commands.add_parser(
        "compare", parents=[common], help="two batches of one job side by side: accepted items, accuracy, cost, time"
    )
    one.add_argument("a", type=number, metavar="A", help="the number of the batch that is taken as the old one")
    one.add_argument("b", type=number, metavar="B", help="the number of the batch that is taken as the new one")
    one.set_defaults(run=runs("compare"))


def _operations(commands: Any, common: Command, jobs: Command) -> None:
    one = commands.add_parser("dead-letters", parents=[common], help="items that gave up or wait in review, and why")
    one.add_argument("--job", help="of this job only")
    choose_dead_letters(one)
    one.add_argument("--count", action="store_true", help="numbers by batch and reason")
    one.add_argument("--messages", action="store_true", help="show messages: a provider may quote a document in them")
    one.add_argument("--limit", type=number, default=1000, help="at most this many, newest batch first; default 1000")
    one.set_defaults(run=runs("dead_letters"))
    one = commands.add_parser(
        "replay", parents=[common, jobs], help="send dead letters again: triggers the job's DAG with a child batch"
    )
    one.add_argument("--job", required=True, help="the name of the job's folder")
    choose_dead_letters(one)
    one.add_argument("--dry-run", action="store_true", help="say what would be sent again; trigger nothing")
    one.add_argument("--note", help="why; kept with the batch")
    one.set_defaults(run=runs("replay"))
    one = commands.add_parser(
        "publish", parents=[common], help="show a preview to readers: triggers nightmill_publish, which asks its gates"
    )
    one.add_argument("--batch", type=number, required=True, help="its number, as `status` shows it")
    one.add_argument(
        "--confirm-narrowed", action="store_true", help="although it has a limit, or a filter of another value"
    )
    one.add_argument("--note", help="why; kept in the batch's history")
    one.set_defaults(run=runs("publish"))


def _add_maintenance(commands: Any, common: Command, jobs: Command) -> None:
    one = commands.add_parser("cancel", parents=[common], help="cancel a batch; what it had sent is kept for reuse")
    one.add_argument("--batch", type=number, required=True, help="its number, as `status` shows it")
    one.add_argument("--reason", help="kept with the batch")
    one.set_defaults(run=runs("maintain", "cancel"))
    one = commands.add_parser(
        "lost-create", parents=[common], help="say whether the provider took a create whose reply was lost"
    )
    one.add_argument("--provider-batch", type=number, required=True, help="its number, as the blocked task names it")
    answer = one.add_mutually_exclusive_group(required=True)
    answer.add_argument("--taken-as", metavar="ID", help="the provider has it under this id")
    answer.add_argument("--not-taken", action="store_true", help="it has none: its requests are sent anew")
    one.set_defaults(run=runs("lost_create"))
    one = commands.add_parser("maintain", parents=[common, jobs], help="what nightmill_maintenance does, once")
    one.add_argument("--dry-run", action="store_true", help="say what would be done")
    one.add_argument("--sweep", choices=list(map(str, Sweep)), help="this one only")
    one.set_defaults(run=runs("maintain"))

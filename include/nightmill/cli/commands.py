"""The commands for people and scripts. Connections come from AIRFLOW_CONN_* variables, as Airflow reads them."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from nightmill.operations.apply import Applied

from nightmill.cli import view_commands
from nightmill.domain.errors import NightmillError
from nightmill.domain.failures import EndedAs, FailureClass
from nightmill.domain.maintenance import Sweep
from nightmill.domain.priority import Priority
from nightmill.services.connections import OWNER, from_variables
from nightmill.services.exit_codes import exit_code

DEFAULT_JOBS = Path("dags/jobs")


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


def init_db(arguments: argparse.Namespace) -> int:
    """Bring the ledger to this version."""
    from nightmill.storage import migrate

    ran = migrate.init_db(arguments.dsn or from_variables(OWNER).database_url())
    _say(arguments, {"migrations": ran}, "\n".join(f"applied {name}" for name in ran) or "up to date")
    return 0


def apply(arguments: argparse.Namespace) -> int:
    """Make tables and views of all job folders."""
    from nightmill.operations import apply as stage

    done = stage.run(from_variables(OWNER).database_url(), arguments.jobs)
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


def validate(arguments: argparse.Namespace) -> int:
    """Check job folders without touching any service."""
    from nightmill.cli import validate as command

    return command.run(arguments.jobs, arguments.json, arguments.names)


def doctor(arguments: argparse.Namespace) -> int:
    """Look at everything a run needs."""
    from nightmill.cli import doctor as command

    return command.run(arguments)


def estimate(arguments: argparse.Namespace) -> int:
    """What a run of a job would send and cost."""
    from nightmill.cli import estimate as command

    return command.run(arguments)


def status(arguments: argparse.Namespace) -> int:
    """Where batches stand, once or as a live view."""
    from nightmill.cli import status as command

    return command.run(arguments)


def compare(arguments: argparse.Namespace) -> int:
    """Two batches of one job side by side."""
    from nightmill.cli import compare as command

    return command.run(arguments)


def dead_letters(arguments: argparse.Namespace) -> int:
    """Items that gave up or wait in review."""
    from nightmill.cli import dead_letters as command

    return command.run(arguments)


def replay(arguments: argparse.Namespace) -> int:
    """Send dead letters of a batch again."""
    from nightmill.cli import replay as command

    return command.run(arguments)


def publish(arguments: argparse.Namespace) -> int:
    """Show a preview to readers."""
    from nightmill.cli import publish as command

    return command.run(arguments)


def cancel(arguments: argparse.Namespace) -> int:
    """Cancel one batch."""
    from nightmill.cli import maintain as command

    return command.cancel(arguments)


def maintain(arguments: argparse.Namespace) -> int:
    """The sweeps of nightmill_maintenance, once."""
    from nightmill.cli import maintain as command

    return command.run(arguments)


def lost_create(arguments: argparse.Namespace) -> int:
    """What became of a create whose reply was lost."""
    from nightmill.cli import lost_create as command

    return command.run(arguments)


def _say(arguments: argparse.Namespace, value: Any, text: str) -> None:
    print(json.dumps(value) if arguments.json else text)


def _text(fault: NightmillError | None) -> str | None:
    return str(fault) if fault is not None else None


class _Command(argparse.ArgumentParser):
    """Takes whole words only: a slip such as --clas must not trigger anything."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)


def _parser() -> argparse.ArgumentParser:
    parser = _Command(prog="python -m nightmill", description=__doc__)
    commands = parser.add_subparsers(required=True, parser_class=_Command)
    common = _Command(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON")
    jobs = _Command(add_help=False)
    jobs.add_argument(
        "--jobs", type=_folder, default=DEFAULT_JOBS, help="folder of job folders; NIGHTMILL_JOBS_PATH is searched too"
    )
    one = commands.add_parser("init-db", parents=[common], help="create or migrate the ledger database")
    one.add_argument("--dsn", help=f"of a login with CREATEROLE; default: the connection {OWNER}")
    one.set_defaults(run=init_db)
    one = commands.add_parser("apply", parents=[common, jobs], help="create the tables and views of all jobs")
    one.set_defaults(run=apply)
    one = commands.add_parser("validate", parents=[common, jobs], help="check job folders")
    one.add_argument("names", nargs="*", metavar="JOB", help="the names of folders; without any: all of them")
    one.set_defaults(run=validate)
    one = commands.add_parser("doctor", parents=[common, jobs], help="check everything a run needs, with remedies")
    one.set_defaults(run=doctor)
    one = commands.add_parser(
        "estimate", parents=[common, jobs], help="what a run of a job would send and cost; nothing is written or sent"
    )
    _estimate_arguments(one)
    one.set_defaults(run=estimate)
    one = commands.add_parser("status", parents=[common], help="every open batch and the newest closed one of each job")
    which = one.add_mutually_exclusive_group()
    which.add_argument("--batch", type=_number, help="this batch only; with its completion report once it has ended")
    which.add_argument("--job", help="the batches of this job only")
    one.add_argument("--watch", action="store_true", help="a live view; a line per change where there is no terminal")
    one.set_defaults(run=status)
    one = commands.add_parser(
        "compare", parents=[common], help="two batches of one job side by side: accepted items, accuracy, cost, time"
    )
    one.add_argument("a", type=_number, metavar="A", help="the number of the batch that is taken as the old one")
    one.add_argument("b", type=_number, metavar="B", help="the number of the batch that is taken as the new one")
    one.set_defaults(run=compare)
    _operations(commands, common, jobs)
    _add_maintenance(commands, common, jobs)
    view_commands.add(commands, common, _number)
    return parser


def _operations(commands: Any, common: _Command, jobs: _Command) -> None:
    one = commands.add_parser("dead-letters", parents=[common], help="items that gave up or wait in review, and why")
    one.add_argument("--job", help="of this job only")
    _choice_arguments(one)
    one.add_argument("--count", action="store_true", help="numbers by batch and reason")
    one.add_argument("--messages", action="store_true", help="show messages: a provider may quote a document in them")
    one.add_argument("--limit", type=_number, default=1000, help="at most this many, newest batch first; default 1000")
    one.set_defaults(run=dead_letters)
    one = commands.add_parser(
        "replay", parents=[common, jobs], help="send dead letters again: triggers the job's DAG with a child batch"
    )
    one.add_argument("--job", required=True, help="the name of the job's folder")
    _choice_arguments(one)
    one.add_argument("--dry-run", action="store_true", help="say what would be sent again; trigger nothing")
    one.add_argument("--note", help="why; kept with the batch")
    one.set_defaults(run=replay)
    one = commands.add_parser(
        "publish", parents=[common], help="show a preview to readers: triggers nightmill_publish, which asks its gates"
    )
    one.add_argument("--batch", type=_number, required=True, help="its number, as `status` shows it")
    one.add_argument(
        "--confirm-narrowed", action="store_true", help="although it has a limit, or a filter of another value"
    )
    one.add_argument("--note", help="why; kept in the batch's history")
    one.set_defaults(run=publish)


def _add_maintenance(commands: Any, common: _Command, jobs: _Command) -> None:
    one = commands.add_parser("cancel", parents=[common], help="cancel a batch; what it had sent is kept for reuse")
    one.add_argument("--batch", type=_number, required=True, help="its number, as `status` shows it")
    one.add_argument("--reason", help="kept with the batch")
    one.set_defaults(run=cancel)
    one = commands.add_parser(
        "lost-create", parents=[common], help="say whether the provider took a create whose reply was lost"
    )
    one.add_argument("--provider-batch", type=_number, required=True, help="its number, as the blocked task names it")
    answer = one.add_mutually_exclusive_group(required=True)
    answer.add_argument("--taken-as", metavar="ID", help="the provider has it under this id")
    answer.add_argument("--not-taken", action="store_true", help="it has none: its requests are sent anew")
    one.set_defaults(run=lost_create)
    one = commands.add_parser("maintain", parents=[common, jobs], help="what nightmill_maintenance does, once")
    one.add_argument("--dry-run", action="store_true", help="say what would be done")
    one.add_argument("--sweep", choices=list(map(str, Sweep)), help="this one only")
    one.set_defaults(run=maintain)


def _estimate_arguments(parser: argparse.ArgumentParser) -> None:
    """What the trigger form asks too."""
    parser.add_argument("job", help="the name of the job's folder")
    parser.add_argument("--limit", type=_number, help="at most this many source rows")
    parser.add_argument("--filter", action="append", default=[], metavar="NAME=VALUE", help="a filter of the job")
    parser.add_argument("--reprocess", action="store_true", help="as if no accepted result existed")
    parser.add_argument(
        "--priority", choices=list(map(str, Priority)), default=str(Priority.NORMAL), help="low: leave room to others"
    )
    example = "such as 2026-01-31 or 2026-01-31T02:00+00:00"
    parser.add_argument("--data-interval", nargs=2, type=_moment, metavar=("START", "END"), help=example)
    for end in ("start", "end"):
        parser.add_argument(f"--data-interval-{end}", type=_moment, help=example)


def _choice_arguments(parser: argparse.ArgumentParser) -> None:
    """Which dead letters and items in review. Without any: all of them."""
    parser.add_argument(
        "--batch", type=_number, help="of this batch; replay takes the job's newest ended one without it"
    )
    parser.add_argument("--class", dest="classes", action="append", default=[], choices=list(map(str, FailureClass)))
    parser.add_argument("--code", dest="codes", action="append", default=[], help="such as schema; may be repeated")
    parser.add_argument("--ended-as", action="append", default=[], choices=get_args(EndedAs), help="one kind only")
    parser.add_argument("--tenant", dest="tenants", action="append", default=[], help="may be repeated")
    parser.add_argument("--id", "--ids", dest="ids", nargs="+", action="extend", default=[], help="ids of the source")
    parser.add_argument("--since", type=_moment, help="gave up since, such as 2026-01-31 or 2026-01-31T02:00+00:00")


def _number(text: str) -> int:
    """A whole number that a batch or a limit can be."""
    if not (text.isascii() and text.isdigit() and 0 < int(text[:11]) < 2**31):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to {2**31 - 1}, found {text!r}")
    return int(text)


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text!r}")
    return Path(text)


def _moment(text: str) -> datetime:
    """A moment; UTC where it does not say."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a moment such as 2026-01-31T02:00, found {text!r}") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

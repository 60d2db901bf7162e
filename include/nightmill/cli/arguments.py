"""Arguments that several commands take, and how they are read."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from nightmill.domain.failures import EndedAs, FailureClass
from nightmill.domain.priority import Priority

DEFAULT_JOBS = Path("dags/jobs")


class Command(argparse.ArgumentParser):
    """Takes whole words only: a slip such as --clas must not trigger anything."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)


def runs(module: str, function: str = "run") -> Callable[[argparse.Namespace], int]:
    """A function of nightmill.cli, imported only when its command runs: imports take a second."""

    def call(arguments: argparse.Namespace) -> int:
        return int(getattr(import_module(f"nightmill.cli.{module}"), function)(arguments))

    return call


def describe_run(parser: argparse.ArgumentParser) -> None:
    """What the trigger form asks too."""
    parser.add_argument("job", help="the name of the job's folder")
    parser.add_argument("--limit", type=number, help="at most this many source rows")
    parser.add_argument("--filter", action="append", default=[], metavar="NAME=VALUE", help="a filter of the job")
    parser.add_argument("--reprocess", action="store_true", help="as if no accepted result existed")
    parser.add_argument(
        "--priority", choices=list(map(str, Priority)), default=str(Priority.NORMAL), help="low: leave room to others"
    )
    example = "such as 2026-01-31 or 2026-01-31T02:00+00:00"
    parser.add_argument("--data-interval", nargs=2, type=moment, metavar=("START", "END"), help=example)
    for end in ("start", "end"):
        parser.add_argument(f"--data-interval-{end}", type=moment, help=example)


def choose_dead_letters(parser: argparse.ArgumentParser) -> None:
    """Which dead letters and items in review. Without any: all of them."""
    parser.add_argument(
        "--batch", type=number, help="of this batch; replay takes the job's newest ended one without it"
    )
    parser.add_argument("--class", dest="classes", action="append", default=[], choices=list(map(str, FailureClass)))
    parser.add_argument("--code", dest="codes", action="append", default=[], help="such as schema; may be repeated")
    parser.add_argument("--ended-as", action="append", default=[], choices=get_args(EndedAs), help="one kind only")
    parser.add_argument("--tenant", dest="tenants", action="append", default=[], help="may be repeated")
    parser.add_argument("--id", "--ids", dest="ids", nargs="+", action="extend", default=[], help="ids of the source")
    parser.add_argument("--since", type=moment, help="gave up since, such as 2026-01-31 or 2026-01-31T02:00+00:00")


def number(text: str) -> int:
    """A whole number that a batch or a limit can be."""
    if not (text.isascii() and text.isdigit() and 0 < int(text[:11]) < 2**31):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to {2**31 - 1}, found {text!r}")
    return int(text)


def folder(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text!r}")
    return Path(text)


def moment(text: str) -> datetime:
    """A moment; UTC where it does not say."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a moment such as 2026-01-31T02:00, found {text!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)

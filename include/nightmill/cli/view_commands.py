"""The parsers of the commands about a view: rollback, release, history, retire. The commands are imported when run."""

from __future__ import annotations

import argparse
from typing import Any

from nightmill.cli.arguments import number, runs

_EXAMPLE = "such as 2026-01-31 or 2026-01-31T02:00+00:00"


def add(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add them to the parser's commands."""
    one = commands.add_parser(
        "rollback", parents=[common], help="show what a view showed before, and hold it until `release`"
    )
    one.add_argument("view", help="as `publish.view` in job.yaml")
    what = one.add_mutually_exclusive_group()
    what.add_argument("--to", type=number, metavar="SEQ", help="this publication, as `history` shows it")
    what.add_argument("--interval", metavar="START", help=f"this data interval only; its start, {_EXAMPLE}")
    one.add_argument("--revoke", action="store_true", help="later runs ask for the answers of the bad batch again")
    one.add_argument("--reason", help="kept with the publication, and said to runs that meet the hold")
    one.add_argument("--dry-run", action="store_true", help="say what would be done")
    one.add_argument("--yes", action="store_true", help="do not ask")
    one.set_defaults(run=runs("rollback"))
    one = commands.add_parser("release", parents=[common], help="lift the hold of a rollback: runs publish again")
    one.add_argument("view", help="as `publish.view` in job.yaml")
    one.add_argument("--interval", metavar="START", help=f"the hold of this interval; its start, {_EXAMPLE}")
    one.set_defaults(run=runs("rollback", "release"))
    one = commands.add_parser("history", parents=[common], help="the publications of a view, newest first")
    one.add_argument("view", help="as `publish.view` in job.yaml")
    one.add_argument("--limit", type=number, default=20, help="at most this many; default 20")
    one.set_defaults(run=runs("history"))
    one = commands.add_parser("retire", parents=[common], help="drop the views and rows of a job for good")
    one.add_argument("job", help="the name of the job's folder")
    one.add_argument("--yes", action="store_true", help="do not ask")
    one.set_defaults(run=runs("retire"))

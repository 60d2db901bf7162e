"""The commands of the local stack, as the Makefile calls them."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, MutableMapping, Sequence
from typing import NoReturn

from dev.demo.run import has_input, load_input, run_demo, run_job, views_made
from dev.stack.airflow_settings import ADMIN_USER, LEDGER_DATABASE, OWNER
from dev.stack.ports import LOOPBACK
from dev.stack.postgres_account import binaries
from dev.stack.settings import EXAMPLES, settings_from_env
from dev.stack.stack import Running, Stack
from nightmill.domain.errors import ConfigError
from nightmill.jobs.job_folders import JOBS_PATH
from nightmill.jobs.rules.data_interval import moment
from nightmill.jobs.rules.publishing import Publishing
from nightmill.services.exit_codes import exit_code


def main(argv: Sequence[str]) -> int:
    """Run one command; 0 on success, 1 with cause and remedy on stderr otherwise."""
    with_examples(os.environ)
    commands: dict[str, tuple[Callable[[Stack], int], str]] = {
        "up": (up, "start Postgres, the local provider and Airflow, or repair what is not running"),
        "down": (down, "stop everything that up started"),
        "status": (status, "what runs where"),
        "demo": (run_demo, "up, then run the demo job and show its result"),
        "psql": (psql, "open psql on the database nightmill as its owner"),
    }
    parser = argparse.ArgumentParser(
        prog="python -m dev.stack",
        description="The local stack. `cli ...` runs `python -m nightmill ...` with its connections, `run JOB` a job.",
    )
    choices = parser.add_subparsers(dest="command", required=True)
    for name, (_, text) in commands.items():
        choices.add_parser(name, help=text, description=text)

    def command() -> int:
        if argv[:1] == ["cli"]:
            cli(Stack(settings_from_env()), argv[1:])
        if argv[:1] == ["run"]:
            return run(Stack(settings_from_env()), argv[1:])
        chosen, _ = commands[parser.parse_args(argv).command]
        return chosen(Stack(settings_from_env()))

    return exit_code(command, interrupted="interrupted; `make down` stops what is running")


def with_examples(env: MutableMapping[str, str]) -> None:
    """The stack runs the example jobs beside those that NIGHTMILL_JOBS_PATH names."""
    own = [path for path in env.get(JOBS_PATH, "").split(":") if path and path != str(EXAMPLES)]
    env[JOBS_PATH] = ":".join([str(EXAMPLES), *own])


def up(stack: Stack) -> int:
    """Start or repair, then say where the UI is."""
    began = time.monotonic()
    running = stack.up()
    if running.changed:
        print(f"started {', '.join(running.changed)} in {time.monotonic() - began:.0f} s")
    else:
        print("already up: nothing to start")
    if running.changed or not has_input(running):
        load_input(running)
    print(views_made(running), end="")
    print(login_line(running))
    return 0


def down(stack: Stack) -> int:
    """Stop, then say what was stopped."""
    stopped = stack.down()
    print(f"stopped {', '.join(stopped)}" if stopped else "nothing was running")
    return 0


def status(stack: Stack) -> int:
    """One line per part; exit code 1 unless all of it runs."""
    for name, state, where in stack.status():
        print(f"{name:14} {state:12} {where}")
    running = stack.attach()
    if running is not None:
        print(login_line(running))
    return 0 if running is not None else 1


def psql(stack: Stack) -> NoReturn:
    """Replace this process by the embedded server's psql."""
    running = _attached(stack)
    env = os.environ | {"PGPASSWORD": running.server.password(OWNER), "PGPORT": str(running.server.port)}
    program = str(binaries() / "psql")
    os.execve(program, [program, "-h", LOOPBACK, "-U", OWNER, "-d", LEDGER_DATABASE], env)


def run(stack: Stack, arguments: Sequence[str]) -> int:
    """Run one job to its end and show its result. The options are the fields of its trigger form."""
    parser = argparse.ArgumentParser(prog='make run JOB=NAME ARGS="..."', description=run.__doc__, allow_abbrev=False)
    parser.add_argument("job", nargs="?", help="the name of its folder")
    parser.add_argument("--limit", type=int, help="at most this many source rows; a preview unless --publish yes")
    parser.add_argument("--filter", action="append", default=[], metavar="NAME=VALUE", help="a filter of the job")
    parser.add_argument("--dry-run", action="store_true", help="freeze, plan and price; send nothing")
    parser.add_argument("--reprocess", action="store_true", help="ask and pay again, also where there is an answer")
    parser.add_argument("--note", help="why; kept with the batch")
    parser.add_argument(
        "--publish",
        choices=list(map(str, Publishing)),
        help="yes: replace what the view shows; no: a preview; auto: no with a limit or a filter of another value",
    )
    parser.add_argument(
        "--data-interval", nargs=2, type=_moment, metavar=("START", "END"), help="what a query binds that names it"
    )
    for end in ("start", "end"):
        parser.add_argument(f"--data-interval-{end}", type=_moment, help="one end of it alone")
    asked = parser.parse_args(arguments)
    running = _attached(stack)
    if asked.job is None:
        raise ConfigError("Which job shall run?", "name its folder: `make run JOB=license_audit`.")
    apart = ("job", "filter", "data_interval")
    chosen = {name: value for name, value in vars(asked).items() if name not in apart and value}
    if asked.data_interval:
        chosen |= dict(zip(("data_interval_start", "data_interval_end"), asked.data_interval, strict=True))
    return run_job(running, asked.job, chosen, asked.filter)


def _moment(text: str) -> str:
    """A moment as the trigger form takes it; UTC where it names no offset."""
    try:
        found = moment("it", text)
    except ConfigError:
        found = None
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a moment such as 2026-01-31T02:00, found {text!r}")
    return found.isoformat()


def cli(stack: Stack, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by `python -m nightmill ARGUMENTS`, with the stack's connections and Airflow's login."""
    running = _attached(stack)
    os.execve(sys.executable, [sys.executable, "-m", "nightmill", *arguments], running.command_env())


def _attached(stack: Stack) -> Running:
    running = stack.attach()
    if running is None:
        parts = stack.status()
        gone = [name for name, state, _ in parts if state in ("down", "dead")]
        which = f": {' and '.join(gone)} {'does' if len(gone) == 1 else 'do'} not run" if len(gone) < len(parts) else ""
        raise ConfigError(f"The stack is not up{which}.", "run `make up`.")
    return running


def login_line(running: Running) -> str:
    """Where the UI is and how to log in."""
    return f"Airflow UI: {running.ui}  user {ADMIN_USER}  password {running.admin_password}"

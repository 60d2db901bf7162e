"""How a command ends: what went wrong in words instead of a traceback, and its exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

import psycopg

from nightmill.domain.errors import NightmillError


def exit_code(command: Callable[[], int], interrupted: str = "interrupted") -> int:
    """Run a command. Its own code; 1 = it could not be done, with cause and remedy on stderr, or nobody reads its
    output any more (`| head`); 130 = Ctrl-C. A parser's SystemExit passes through."""
    try:
        code = _told(command, interrupted)
        sys.stdout.flush()
        sys.stderr.flush()
        return code
    except BrokenPipeError:
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            _let_go_of_broken(stream)


def _told(command: Callable[[], int], interrupted: str) -> int:
    try:
        return command()
    except NightmillError as fault:
        sys.stderr.write(f"error: {fault.cause}\nremedy: {fault.remedy}\n")
    except psycopg.OperationalError as fault:
        sys.stderr.write(
            f"error: the database did not finish the command ({type(fault).__name__})\n"
            "remedy: run the command again; look into the server's log if it stays\n"
        )
    except KeyboardInterrupt:
        sys.stderr.write(f"{interrupted}\n")
        return 130
    return 1


def _let_go_of_broken(stream: TextIO) -> None:
    """Python writes what is left in its buffer once more when it ends, and complains where nobody reads it."""
    try:
        stream.flush()
    except BrokenPipeError:
        with suppress(OSError, ValueError):  # no file of the operating system
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

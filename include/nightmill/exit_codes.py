"""How a command ends: what went wrong in words instead of a traceback, and its exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import psycopg

from nightmill.domain.errors import NightmillError


def exit_code(command: Callable[[], int], interrupted: str = "interrupted") -> int:
    """Run a command. Its own code; 1 = it could not be done, with cause and remedy on stderr, or nobody reads its
    output any more; 130 = Ctrl-C."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except NightmillError as fault:
        sys.stderr.write(f"error: {fault.cause}\nremedy: {fault.remedy}\n")
    except psycopg.OperationalError as fault:
        sys.stderr.write(
            f"error: the database did not finish the command ({type(fault).__name__})\n"
            "remedy: run the command again; look into the server's log if it stays\n"
        )
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever reads our output has seen enough
    except KeyboardInterrupt:
        sys.stderr.write(f"{interrupted}\n")
        return 130
    return 1

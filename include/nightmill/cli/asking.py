"""Who runs a command, and whether that person means it."""

from __future__ import annotations

import getpass
import sys

from nightmill.domain.errors import ConfigError


def who() -> str:
    """The account of the operating system, as it is kept with what the command does."""
    try:
        return f"{getpass.getuser()} (command line)"
    except (KeyError, OSError):  # an account without a name, as in containers
        return "somebody (command line)"


def sure(question: str, *, yes: bool) -> bool:
    """Ask on the terminal; `yes` was said already. Raises ConfigError where nobody can be asked."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError("Nobody can be asked here: the input is no terminal.", "Run the command again with --yes.")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")

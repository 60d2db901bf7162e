"""`nightmill <command>`, or `python -m nightmill <command>` where only the code is on the path."""

import sys


def run() -> int:
    """Run the command of this process's arguments; its exit code."""
    try:
        from nightmill.cli.commands import main
    except KeyboardInterrupt:  # imports take a second
        return 130
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())

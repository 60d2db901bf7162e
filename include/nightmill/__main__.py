"""`python -m nightmill <command>`."""

import sys

try:
    from nightmill.cli.commands import main
except KeyboardInterrupt:  # imports take a second
    sys.exit(130)

sys.exit(main(sys.argv[1:]))

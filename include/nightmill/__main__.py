"""`python -m nightmill <command>`."""

import sys

from nightmill.cli.commands import main

sys.exit(main(sys.argv[1:]))

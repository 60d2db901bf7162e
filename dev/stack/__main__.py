"""`python -m dev.stack up|down|status|demo|run|cli|psql`."""

from __future__ import annotations

import sys

from dev.stack.commands import main

sys.exit(main(sys.argv[1:]))

"""`python -m nightmill.local up|down|status|demo|run|cli|psql`."""

from __future__ import annotations

import sys

from nightmill.local.commands import main

sys.exit(main(sys.argv[1:]))

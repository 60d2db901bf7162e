"""`python -m nightmill.simulator`."""

import sys

from nightmill.simulator.server import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

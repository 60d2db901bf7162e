"""`python -m dev.practice_provider`."""

import sys

from dev.practice_provider.server import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

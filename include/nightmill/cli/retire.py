"""retire: drop the views and rows of a job for good."""

from __future__ import annotations

import argparse
import json

from nightmill.cli.asking import sure, who
from nightmill.operations import retire as stage
from nightmill.services.connections import OWNER, from_variables


def run(arguments: argparse.Namespace) -> int:
    """Ask, and drop them."""
    dsn, job = from_variables(OWNER).database_url(), arguments.job
    listed = ", ".join(f"results.{view}" for view in stage.look(dsn, job))
    if not sure(f"Drop {listed} with all rows? Nothing brings them back.", yes=arguments.yes):
        print("nothing was done")
        return 1
    views = stage.run(dsn, job, who())
    if arguments.json:
        print(json.dumps({"job": job, "views": views}))
        return 0
    print(f"{job}: dropped {listed}; what its runs paid stays in the ledger")
    print("delete its job folder too: `apply` would make an empty view for it again")
    return 0

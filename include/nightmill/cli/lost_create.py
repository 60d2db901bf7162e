"""lost-create: says what became of a create whose reply was lost, where only a person can tell."""

from __future__ import annotations

import argparse
import json
import os

from nightmill.operations import answered_create
from nightmill.services.connections import environment_of


def run(arguments: argparse.Namespace) -> int:
    """Note the answer; the task that asked is then cleared."""
    done = answered_create.run(environment_of(os.environ), arguments.provider_batch, arguments.taken_as)
    if arguments.json:
        print(json.dumps({"provider_batch_id": done.provider_batch_id, "state": str(done.state)}))
    else:
        print(f"provider batch {done.provider_batch_id} is {done.state}; clear run_shard of shard {done.shard_id}")
    return 0

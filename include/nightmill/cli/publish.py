"""publish: shows a preview to readers, through the DAG nightmill_publish."""

from __future__ import annotations

import argparse
import json
import os

from nightmill.cli.replay import trigger
from nightmill.operations import show_preview
from nightmill.services.connections import environment_of

DAG = "nightmill_publish"


def run(arguments: argparse.Namespace) -> int:
    """Refuse what cannot be shown, and trigger the DAG."""
    narrowed = bool(arguments.confirm_narrowed)
    batch = show_preview.look(environment_of(os.environ), arguments.batch, confirm_narrowed=narrowed)
    given = {"batch": batch.batch_id, "confirm_narrowed": narrowed, "note": arguments.note}
    run_id = trigger(DAG, given, os.environ, by_hand=DAG)
    if arguments.json:
        print(json.dumps({"batch": batch.batch_id, "view": batch.view_name, "dag_id": DAG, "run_id": run_id}))
    else:
        print(f"triggered {DAG}, run {run_id}: results.{batch.view_name} shows batch {batch.batch_id} once it is green")
    return 0

"""rollback and release: undo what a view shows, and let runs publish again."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from nightmill.cli.asking import sure, who
from nightmill.domain.wording import pluralised
from nightmill.operations import rollback as stage
from nightmill.operations.rollback import Done, Wish
from nightmill.services.connections import environment_of
from nightmill.storage.holds import Hold
from nightmill.storage.rollbacks import Plan

_NO_EVENT = (
    "DAGs that are scheduled on results.{view} were not triggered: only the DAG nightmill_rollback can do that. "
    "Trigger them by hand where they must read again."
)


def run(arguments: argparse.Namespace) -> int:
    """Say what is rolled back, ask, and do it."""
    env = environment_of(os.environ)
    wish = Wish(arguments.view, arguments.to, arguments.interval, arguments.revoke, arguments.reason)
    plan = stage.look(env, wish)
    if not arguments.json:
        print("\n".join(stage.described(plan, wish)))
    done = None
    if not arguments.dry_run:
        if not sure(f"Roll back results.{wish.view}?", yes=arguments.yes):
            print("nothing was done")
            return 1
        done = stage.run(env, wish, plan, who())
    if arguments.json:
        print(json.dumps(fields(plan, done)))
        return 0
    print(_said(done) if done else "dry run: nothing was done")
    return 0


def _said(done: Done) -> str:
    lines = [f"done: results.{done.shown.view_name} shows publication {done.shown.publish_seq}"]
    if done.revoked is not None:
        lines.append(f"{pluralised(done.revoked, 'answer')} revoked: later runs ask for them again")
    lines.append(f"to let runs publish again: {done.hold.release}")
    return "\n".join([*lines, _NO_EVENT.format(view=done.shown.view_name)])


def fields(plan: Plan, done: Done | None) -> dict[str, Any]:
    """What is rolled back, as JSON; `publish_seq` is the new publication, null on a dry run."""
    return {
        "view": plan.shown.view_name,
        "from": plan.shown.publish_seq,
        "to": plan.target,
        "interval": [end.isoformat() for end in plan.interval] if plan.interval else None,
        "taken_back": plan.taken_back,
        "shown_again": [one.batch_id for one in plan.brought_back],
        "publish_seq": done.shown.publish_seq if done else None,
        "revoked": done.revoked if done else None,
        "release": done.hold.release if done else None,
    }


def release(arguments: argparse.Namespace) -> int:
    """Lift a hold."""
    lifted = stage.release(environment_of(os.environ), arguments.view, arguments.interval, who())
    if arguments.json:
        print(json.dumps([hold_fields(one) for one in lifted]))
        return 0
    print("\n".join(f"released {one.what}: {one.why}" for one in lifted))
    print("runs that were stopped go on when the task that failed is cleared")
    return 0


def hold_fields(one: Hold) -> dict[str, Any]:
    """A hold as JSON."""
    return {
        "view": one.view_name,
        "interval": [end.isoformat() for end in one.interval] if one.interval else None,
        "publish_seq": one.publish_seq,
        "taken_back": one.taken_back,
        "reason": one.reason,
        "held_at": one.held_at.isoformat(),
        "held_by": one.held_by,
        "revoked": one.revoked,
        "released_at": one.released_at.isoformat() if one.released_at else None,
        "released_by": one.released_by,
    }

"""maintain: the sweeps of nightmill_maintenance, by hand; and cancel."""

from __future__ import annotations

import argparse
import json
import os

from nightmill.domain.errors import ConfigError
from nightmill.domain.maintenance import Action, Sweep
from nightmill.domain.wording import pluralised
from nightmill.operations import cancel as stage
from nightmill.services.connections import OWNER, environment_of, from_variables
from nightmill.storage.maintenance import isolated
from nightmill.upkeep import maintenance


def run(arguments: argparse.Namespace) -> int:
    """Run all sweeps, or the one that is named, and print what was done; 1 where something of it failed."""
    env, jobs = environment_of(os.environ), maintenance.live_jobs(arguments.jobs)
    sweeps = [Sweep(arguments.sweep)] if arguments.sweep else list(Sweep)
    done: list[Action] = []
    for sweep in sweeps:
        with isolated(done, sweep):
            done += maintenance.run(env, jobs, _owner(), sweep, dry_run=arguments.dry_run)
    code = 1 if any(one.failed for one in done) else 0
    if arguments.json:
        print(json.dumps([fields(one) for one in done]))
        return code
    head = "dry run, nothing was done: " if arguments.dry_run else ""
    print("\n".join(f"{head}{_mark(one)}{one}" for one in done) or "nothing to do")
    return code


def _mark(one: Action) -> str:
    return "FAILED " if one.failed else "ALERT " if one.alert else ""


def _owner() -> str | None:
    try:
        return from_variables(OWNER).database_url()
    except ConfigError:
        return None


def fields(one: Action) -> dict[str, object]:
    """One action as JSON."""
    return {
        "sweep": str(one.sweep),
        "batch_id": one.batch_id,
        "what": one.what,
        "alert": one.alert,
        "failed": one.failed,
    }


def cancel(arguments: argparse.Namespace) -> int:
    """Cancel one batch."""
    reason = arguments.reason or "cancelled from the command line"
    cancelled = stage.run(environment_of(os.environ), stage.Target(arguments.batch), reason)
    batch = cancelled.batch
    if arguments.json:
        facts = {"batch_id": batch.batch_id, "state": str(batch.state), "reason": batch.state_reason}
        print(json.dumps(facts | {"requested": cancelled.requested, "in_flight": cancelled.in_flight}))
        return 0
    done = "is CANCELLED" if cancelled.requested else "was CANCELLED before"
    print(f"{batch.job}: batch {batch.batch_id} {done} ({batch.state_reason})")
    if cancelled.in_flight:
        print(
            f"{pluralised(cancelled.in_flight, 'provider batch')} at the provider: nightmill_maintenance, or "
            "`python -m nightmill maintain`, stops and collects what is paid; later runs reuse it"
        )
    return 0

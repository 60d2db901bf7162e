"""Abandoned runs: an open batch of which nothing was seen for the job's grace time is cancelled.

A run that fails by itself cancels nothing, because clearing it goes on without paying again. But what nobody clears
holds tokens, and keeps later runs of the same keys waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from nightmill.domain.maintenance import Action, Sweep
from nightmill.domain.wording import duration
from nightmill.jobs.contract import JobDefinition
from nightmill.services.environment import Environment
from nightmill.storage import batches, contracts, maintenance
from nightmill.storage.maintenance import LastSeen
from nightmill.storage.session import Connection


def run(env: Environment, jobs: Mapping[str, JobDefinition], *, dry_run: bool = False) -> list[Action]:
    """Cancel what is past its grace time. `jobs` are the job folders as they are now; for others the pinned copy
    counts."""
    done: list[Action] = []
    with env.ledger() as conn:
        for one in maintenance.last_seen(conn):
            with maintenance.isolated(done, Sweep.ABANDONED, one.batch_id, conn=conn):
                grace = timedelta(seconds=_grace_s(conn, jobs, one))
                silent = env.now() - one.last_seen
                if silent <= grace:
                    continue
                reason = f"abandoned: nothing was seen of it for {duration(silent.total_seconds())}"
                if not dry_run:
                    batches.cancel(conn, one.batch_id, reason)
                conn.commit()
                done.append(Action(Sweep.ABANDONED, f"cancelled, {reason}", one.batch_id, alert=True))
    return done


def _grace_s(conn: Connection, jobs: Mapping[str, JobDefinition], one: LastSeen) -> float:
    live = jobs.get(one.job)
    return (live if live is not None else contracts.load(conn, one.contract_id)).job.maintenance.abandoned_after_s

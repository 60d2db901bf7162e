"""Retention: raw result files, then rows, items, payloads and dead letters that nobody needs any more.

Kept is what a view shows, the newest published batches (for a rollback), what is still being collected, and whatever
a child batch refers to. Accepted answers (`nightmill.result`) stay: later runs reuse them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from nightmill.domain.contract import JobDefinition
from nightmill.domain.job import Maintenance
from nightmill.domain.maintenance import Action, Sweep
from nightmill.domain.wording import counted
from nightmill.environment import Environment
from nightmill.storage import contracts, ledger, payloads, retention
from nightmill.storage.ledger import Connection
from nightmill.storage.retention import Candidate

PARTITION_TIMEOUT_S = 30.0  # how long old readers of a view may hold one partition


def run(env: Environment, jobs: Mapping[str, JobDefinition], owner_dsn: str, *, dry_run: bool = False) -> list[Action]:
    """Delete what is past its time. Safe to repeat from any point: a batch is noted as retired at the very end."""
    done: list[Action] = []
    with ledger.connect(owner_dsn, application="nightmill maintenance") as conn:
        conn.autocommit = True
        for one in retention.candidates(conn):
            rules = jobs[one.job].job.maintenance if one.job in jobs else _pinned_rules(conn, one)
            if not one.in_flight and _expired(one, rules, env.now()):
                done.append(_batch(env, conn, one, dry_run))
            elif (files := _raw_files(env, conn, one, rules, dry_run)) is not None:
                done.append(files)
    return done


def _pinned_rules(conn: Connection, one: Candidate) -> Maintenance:
    return contracts.load(conn, one.contract_id).job.maintenance


def _expired(one: Candidate, rules: Maintenance, now: datetime) -> bool:
    kept = one.shown or one.needed_by_child
    newest = one.published_rank is not None and one.published_rank <= rules.keep_published
    return not kept and not newest and now > one.ended_at + timedelta(days=rules.batch_days)


def _batch(env: Environment, conn: Connection, one: Candidate, dry_run: bool) -> Action:
    """Partitions first, objects next, the note last: a killed sweep leaves a batch that the next one finishes."""
    what = f"rows, items, payloads and dead letters deleted (ended {one.ended_at:%Y-%m-%d})"
    if not dry_run:
        if not retention.drop_partitions(conn, one, PARTITION_TIMEOUT_S):
            held = "a reader holds its partition; the next sweep goes on"
            return Action(Sweep.RETENTION, held, one.batch_id)
        env.payloads.delete_folder(payloads.batch_folder(one.job, one.batch_id))
        retention.retire(conn, one.batch_id)
    return Action(Sweep.RETENTION, what, one.batch_id)


def _raw_files(env: Environment, conn: Connection, one: Candidate, rules: Maintenance, dry_run: bool) -> Action | None:
    kept = retention.raw_files(conn, one.batch_id, env.now() - timedelta(days=rules.evidence_days))
    paths = [payloads.evidence_path(one.job, one.batch_id, of.token, kind) for of in kept for kind in of.kinds]
    if not paths:
        return None
    if not dry_run:
        for path in paths:
            env.payloads.delete(path)
        retention.note_files_deleted(conn, [of.provider_batch_id for of in kept])
    return Action(Sweep.RETENTION, f"{counted(len(paths), 'raw result file')} deleted", one.batch_id)

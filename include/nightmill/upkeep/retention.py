"""Retention: raw result files, then rows, items, payloads and dead letters that nobody needs any more, and the log of
maintenance itself.

Kept is what a view shows, the newest published batches (for a rollback), the newest one of each job (for its dead
letters), what is still being collected, and whatever a child batch refers to. Accepted answers (`nightmill.result`)
stay: later runs reuse them. A preview that nobody publishes is cancelled after the same time as an ended batch is
deleted, and deleted like one from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from nightmill.domain.maintenance import Action, Sweep
from nightmill.domain.wording import pluralised
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.settings.job import Maintenance
from nightmill.services.environment import Environment
from nightmill.storage import batches, contracts, fence, maintenance, merging, payloads, retention, session
from nightmill.storage.retention import Candidate, Preview
from nightmill.storage.session import Connection

PARTITION_TIMEOUT_S = 30.0  # how long old readers of a view may hold one partition


def run(env: Environment, jobs: Mapping[str, JobDefinition], owner_dsn: str, *, dry_run: bool = False) -> list[Action]:
    """Delete what is past its time. Safe to repeat from any point: a batch is noted as retired at the very end."""
    done: list[Action] = []
    with session.connect(owner_dsn, application="nightmill maintenance") as conn:
        conn.autocommit = True
        for preview in retention.previews(conn):
            with maintenance.isolated(done, Sweep.RETENTION, preview.batch_id, conn=conn):
                done += _preview(env, conn, jobs, preview, dry_run)
        for one in retention.candidates(conn):
            with maintenance.isolated(done, Sweep.RETENTION, one.batch_id, conn=conn):
                done += _of_batch(env, conn, jobs, one, dry_run)
        with maintenance.isolated(done, Sweep.RETENTION, unit="the log of maintenance", conn=conn):
            done += _log(env, conn, jobs, dry_run)
    return done


def _preview(
    env: Environment, conn: Connection, jobs: Mapping[str, JobDefinition], one: Preview, dry_run: bool
) -> list[Action]:
    days = _rules(conn, jobs, one.job, one.contract_id).batch_days
    if env.now() <= one.staged_at + timedelta(days=days):
        return []
    if not dry_run:
        with env.ledger() as ledger_conn:
            batches.cancel(ledger_conn, one.batch_id, f"a preview that nobody published for {days:g} days")
            ledger_conn.commit()
    return [Action(Sweep.RETENTION, f"preview cancelled (made {one.staged_at:%Y-%m-%d})", one.batch_id)]


def _of_batch(
    env: Environment, conn: Connection, jobs: Mapping[str, JobDefinition], one: Candidate, dry_run: bool
) -> list[Action]:
    rules = _rules(conn, jobs, one.job, one.contract_id)
    if not _is_past_its_time(jobs, one, rules, env.now()):
        return _raw_files(env, conn, one, rules, dry_run)
    if dry_run:
        return [_deleted(one)]
    with fence.alone(conn, one.batch_id):  # nobody replays it meanwhile
        again = retention.candidate(conn, one.batch_id)
        if again is None or not _is_past_its_time(jobs, again, rules, env.now()):
            return []
        return [_batch(env, conn, again)]


def _rules(conn: Connection, jobs: Mapping[str, JobDefinition], job: str, contract_id: int) -> Maintenance:
    """As the job's folder says now; where it cannot be read, as it was pinned."""
    return jobs[job].job.maintenance if job in jobs else contracts.load(conn, contract_id).job.maintenance


def _is_past_its_time(jobs: Mapping[str, JobDefinition], one: Candidate, rules: Maintenance, now: datetime) -> bool:
    kept = one.in_flight or one.shown or one.needed_by_child or (one.newest_of_job and one.job in jobs)
    newest = one.published_rank is not None and one.published_rank <= rules.keep_published
    return not kept and not newest and now > one.ended_at + timedelta(days=rules.batch_days)


def _batch(env: Environment, conn: Connection, one: Candidate) -> Action:
    """Partitions first, objects next, the note last: a killed sweep leaves a batch that the next one finishes."""
    if merging.is_seen(conn, one.view_name, one.batch_id) or not retention.drop_partitions(
        conn, one, PARTITION_TIMEOUT_S
    ):
        return Action(Sweep.RETENTION, "a reader holds its partition; the next sweep goes on", one.batch_id)
    env.payloads.delete_folder(payloads.batch_folder(one.job, one.batch_id))
    retention.retire(conn, one.batch_id)
    return _deleted(one)


def _deleted(one: Candidate) -> Action:
    what = f"rows, items, payloads and dead letters deleted (ended {one.ended_at:%Y-%m-%d})"
    return Action(Sweep.RETENTION, what, one.batch_id)


def _log(env: Environment, conn: Connection, jobs: Mapping[str, JobDefinition], dry_run: bool) -> list[Action]:
    """By whole days, so that this adds a line a day at most."""
    newest = retention.newest_contracts(conn)
    days = {job: _rules(conn, jobs, job, contract_id).log_days for job, contract_id in newest.items()}
    today = env.now().replace(hour=0, minute=0, second=0, microsecond=0)
    lines = retention.trim_log(conn, days, Maintenance().log_days, today, dry_run=dry_run)
    what = f"{pluralised(lines, 'line')} of the log of maintenance deleted"
    return [Action(Sweep.RETENTION, what)] if lines else []


def _raw_files(env: Environment, conn: Connection, one: Candidate, rules: Maintenance, dry_run: bool) -> list[Action]:
    kept = retention.raw_files(conn, one.batch_id, env.now() - timedelta(days=rules.evidence_days))
    paths = [payloads.evidence_path(one.job, one.batch_id, of.token, kind) for of in kept for kind in of.kinds]
    if not paths:
        return []
    if not dry_run:
        for path in paths:
            env.payloads.delete(path)
        retention.note_files_deleted(conn, [of.provider_batch_id for of in kept])
    return [Action(Sweep.RETENTION, f"{pluralised(len(paths), 'raw result file')} deleted", one.batch_id)]

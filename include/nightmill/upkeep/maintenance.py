"""Maintenance: the sweeps, each of them a stage, for the DAG and the command line alike."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from nightmill.domain.errors import NightmillError
from nightmill.domain.maintenance import Action, Sweep
from nightmill.jobs import job_folders
from nightmill.jobs.contract import JobDefinition
from nightmill.services.environment import Environment
from nightmill.storage import maintenance
from nightmill.upkeep import abandoned, merging, orphans, retention, stuck, wind_down

log = logging.getLogger(__name__)


def run(
    env: Environment, jobs: Mapping[str, JobDefinition], owner_dsn: str | None, sweep: Sweep, *, dry_run: bool
) -> list[Action]:
    """One sweep: what it did, or would do, logged and (unless it is a dry run) kept in the ledger. What failed is among
    it and stopped nothing else; `refuse_failed` makes it a fault.

    `owner_dsn` is for merging and retention, which delete; without it they do nothing, and that is said.
    """
    match sweep:
        case Sweep.ABANDONED:
            done = abandoned.run(env, jobs, dry_run=dry_run)
        case Sweep.CANCELLED:
            done = wind_down.run(env, jobs, dry_run=dry_run)
        case Sweep.STUCK:
            done = stuck.run(env, dry_run=dry_run)
        case Sweep.ORPHANS:
            done = orphans.run(env, jobs, dry_run=dry_run)
        case Sweep.MERGING | Sweep.RETENTION if owner_dsn is None:
            done = [Action(sweep, "nothing was looked at: the connection nightmill_owner is not defined")]
        case Sweep.MERGING:
            done = merging.run(jobs, owner_dsn, dry_run=dry_run)
        case Sweep.RETENTION:
            done = retention.run(env, jobs, owner_dsn, dry_run=dry_run)
    _tell(env, sweep, done, dry_run)
    return done


def _tell(env: Environment, sweep: Sweep, done: list[Action], dry_run: bool) -> None:
    for one in done:
        log.log(
            logging.WARNING if one.alert or one.failed else logging.INFO, "%s%s", "dry run: " if dry_run else "", one
        )
    if not done:
        log.info("%s: nothing to do", sweep)
    if not dry_run:
        with env.ledger() as conn:
            maintenance.record(conn, done)
            maintenance.note_sweep(conn, sweep)


def live_jobs(built_in: Path) -> dict[str, JobDefinition]:
    """The job folders as they are now, by name; a broken one is left out, and its batches keep their pinned rules."""
    found = {}
    for name, folder in job_folders.find(job_folders.roots(built_in)).folders.items():
        try:
            definition = job_folders.read(folder)
            _ = definition.job
        except NightmillError as fault:
            log.warning("job %s: its pinned rules count, because its folder is broken: %s", name, fault.cause)
            continue
        found[name] = definition
    return found

"""Orphans: batches at the provider that carry a token of nightmill's and that the ledger does not follow.

One whose token this ledger gave out and then gave up (or that was made twice) is ours and costs money for nothing: it
is cancelled. One whose token nobody here knows may belong to another deployment on the same account: it is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from nightmill.domain.contract import JobDefinition
from nightmill.domain.errors import NightmillError
from nightmill.domain.maintenance import Action, Sweep
from nightmill.domain.states import ProviderBatchState
from nightmill.environment import Environment
from nightmill.providers.port import BatchProvider, BatchSnapshot, BatchStatus
from nightmill.storage import maintenance
from nightmill.storage.maintenance import KnownToken

LOOK_BACK = timedelta(days=3)  # a batch that is older has ended: its window is a day
_OVER = (BatchStatus.ENDED, BatchStatus.FAILED)


def run(env: Environment, jobs: Mapping[str, JobDefinition], *, dry_run: bool = False) -> list[Action]:
    """List the account of every job once, and look at what is not over there."""
    done: list[Action] = []
    seen: set[str] = set()
    for name, definition in jobs.items():
        with maintenance.isolated(done, Sweep.ORPHANS, unit=f"the account of job {name} was not looked at"):
            account = env.account(definition).fingerprint
            if account in seen:
                continue
            with env.provider(definition) as provider:
                seen.add(account)  # where the job itself is broken, another one may look at its account
                _of_account(env, provider, dry_run, done)
    return done


def _of_account(env: Environment, provider: BatchProvider, dry_run: bool, done: list[Action]) -> None:
    listed = provider.list_submitted(env.now() - LOOK_BACK)
    alive = [one for one in listed.found if one.status not in _OVER]
    with env.ledger() as conn:  # read after the listing: what was made meanwhile is known by now
        known = maintenance.known_tokens(conn, [one.token for one in alive if one.token])
    for one in alive:
        row = known.get(one.token or "")
        if row is None:
            told = f"{one.provider_id} ({one.raw_status}) carries a token that this ledger does not know; if no other "
            told += "deployment uses this account, cancel it at the provider"
            done.append(Action(Sweep.ORPHANS, told, alert=True))
        elif _unfollowed(one, row):
            with maintenance.isolated(done, Sweep.ORPHANS, row.batch_id, unit=one.provider_id):
                told = f"{one.provider_id} ({one.raw_status}) was given up or made twice and is still alive"
                what, failed = _stopped(provider, one, dry_run)
                done.append(Action(Sweep.ORPHANS, f"{told}; {what}", row.batch_id, alert=True, failed=failed))


def _unfollowed(one: BatchSnapshot, row: KnownToken) -> bool:
    if row.state is ProviderBatchState.ABANDONED:
        return True
    return row.provider_id is not None and row.provider_id != one.provider_id


def _stopped(provider: BatchProvider, one: BatchSnapshot, dry_run: bool) -> tuple[str, bool]:
    """What came of it, and whether it failed."""
    if dry_run:
        return "it would be cancelled at the provider", False
    try:
        return f"it was cancelled at the provider and is {provider.cancel(one.provider_id).raw_status}", False
    except NightmillError as fault:
        return f"cancelling it failed: {fault.cause}", True

"""Orphans: batches at the provider that carry a token of nightmill's and that the ledger does not follow.

One whose token this ledger gave out and then gave up (or that was made twice) is ours and costs money for nothing: it
is cancelled, and once it has ended, its results are read and what they used is booked. One whose token nobody here
knows may belong to another deployment on the same account: it is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from nightmill.domain.errors import NightmillError
from nightmill.domain.maintenance import Action, Sweep
from nightmill.domain.snapshots import BatchStatus, Snapshot
from nightmill.domain.states import ProviderBatchState
from nightmill.domain.wording import pluralised
from nightmill.jobs.contract import JobDefinition
from nightmill.providers.answers import Failed, Unreadable
from nightmill.providers.port import Listing
from nightmill.providers.provider import Provider
from nightmill.providers.result_files import split_lines
from nightmill.services.environment import Environment, scratch
from nightmill.storage import maintenance, strays
from nightmill.storage.maintenance import KnownToken
from nightmill.storage.session import Connection
from nightmill.storage.strays import Stray, Used

LOOK_BACK = timedelta(days=3)  # a batch that is older has ended: its window is a day
_OVER = (BatchStatus.ENDED, BatchStatus.FAILED)


@dataclass(frozen=True, slots=True)
class _Account:
    """One account of a provider, with what of it was looked at and done."""

    env: Environment
    fingerprint: str
    provider: Provider
    dry_run: bool
    done: list[Action]


def run(env: Environment, jobs: Mapping[str, JobDefinition], *, dry_run: bool = False) -> list[Action]:
    """List the account of every job once, and look at what nobody follows there."""
    done: list[Action] = []
    seen: set[str] = set()
    for name, definition in jobs.items():
        with maintenance.isolated(done, Sweep.ORPHANS, unit=f"the account of job {name} was not looked at"):
            account = env.account(definition).fingerprint
            if account in seen:
                continue
            with env.provider(definition) as provider:
                seen.add(account)  # where the job itself is broken, another one may look at its account
                of = _Account(env, account, provider, dry_run, done)
                _listed(of)
                _book(of)
    return done


def _listed(of: _Account) -> None:
    """Look at what the account lists. Where it has no listing, only what is known already can be followed."""
    transport = of.provider.transport
    ours = transport.capabilities.lists_ours
    listed = transport.list_ours(of.env.now() - LOOK_BACK) if ours else Listing((), False)
    with of.env.ledger() as conn:  # read after the listing: what was made meanwhile is known by now
        known = maintenance.known_tokens(conn, [one.token for one in listed.found if one.token])
        booked = strays.booked_ids(conn, of.fingerprint, [one.provider_id for one in listed.found])
        for one in listed.found:
            row = known.get(one.token or "")
            if row is not None and _unfollowed(one, row) and one.provider_id not in booked:
                _stray(of, conn, one, row)
            elif row is None and one.status not in _OVER:
                told = f"{one.provider_id} ({one.raw_status}) carries a token that this ledger does not know; if no "
                told += "other deployment uses this account, cancel it at the provider"
                of.done.append(Action(Sweep.ORPHANS, told, alert=True))


def _unfollowed(one: Snapshot, row: KnownToken) -> bool:
    if row.provider_id is not None and row.provider_id != one.provider_id:
        return True
    return row.state is ProviderBatchState.ABANDONED and one.status is not BatchStatus.FAILED


def _stray(of: _Account, conn: Connection, one: Snapshot, row: KnownToken) -> None:
    if not of.dry_run:
        strays.add(conn, of.fingerprint, one.provider_id, row.token, one.raw_status)
        conn.commit()
    if one.status in _OVER:
        return
    with maintenance.isolated(of.done, Sweep.ORPHANS, row.batch_id, unit=one.provider_id):
        told = f"{one.provider_id} ({one.raw_status}) was given up or made twice and is still alive"
        what, failed = _stopped(of, one)
        of.done.append(Action(Sweep.ORPHANS, f"{told}; {what}", row.batch_id, alert=True, failed=failed))


def _stopped(of: _Account, one: Snapshot) -> tuple[str, bool]:
    """What came of it, and whether it failed."""
    if of.dry_run:
        return "it would be cancelled at the provider", False
    try:
        now = of.provider.transport.cancel(one.provider_id)
        return f"it was cancelled at the provider and is {now.raw_status}", False
    except NightmillError as fault:
        return f"cancelling it failed: {fault.cause}", True


def _book(of: _Account) -> None:
    """Read the strays that have ended, and book what they used."""
    with of.env.ledger() as conn, scratch() as folder:
        for stray in strays.to_book(conn, of.fingerprint):
            conn.commit()
            with maintenance.isolated(of.done, Sweep.ORPHANS, stray.batch_id, unit=stray.provider_id, conn=conn):
                now = of.provider.transport.poll(stray.provider_id)
                if now.status in _OVER and not now.results_pending:
                    _book_one(of, conn, stray, now, folder)


def _book_one(of: _Account, conn: Connection, stray: Stray, now: Snapshot, folder: Path) -> None:
    if of.dry_run:
        told = f"{stray.provider_id} has ended: what it used would be booked"
        of.done.append(Action(Sweep.ORPHANS, told, stray.batch_id))
        return
    used = _used(of.provider, now, folder)
    strays.book(conn, of.fingerprint, stray.provider_id, now.raw_status, used)
    conn.commit()
    told = (
        f"{stray.provider_id} (of provider batch {stray.provider_batch_id}) has ended as {now.raw_status}: "
        f"{pluralised(used.answers, 'answer')} that nobody waits for, booked with {used.prompt_tokens or 0:,} tokens "
        f"in and {used.output_tokens or 0:,} out"
    )
    of.done.append(Action(Sweep.ORPHANS, told, stray.batch_id, alert=used.answers > 0))


def _used(provider: Provider, now: Snapshot, folder: Path) -> Used:
    """What its lines say of their usage; None where no line says anything."""
    answers, told = 0, [0, 0, 0]
    is_told = False
    for file in provider.transport.results(now.provider_id, now.result_refs, folder, "stray").files:
        for line in provider.read_lines(split_lines(file.path)):
            if isinstance(line, Unreadable):
                continue
            answers += not isinstance(line.said, Failed)
            usage = line.said.usage
            if usage.prompt is None:
                continue
            is_told = True
            for at, tokens in enumerate((usage.prompt, usage.cache_read, usage.output)):
                told[at] += tokens or 0
        file.path.unlink()
    return Used(answers, *told) if is_told else Used(answers, None, None, None)

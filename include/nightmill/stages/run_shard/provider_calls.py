"""The calls to the provider about one provider batch, each followed at once by its record in the ledger.

What a call tells and what it fails with become values (`nightmill.domain.step_facts`), from which the next step is
decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from nightmill.domain.errors import AnswerTooLarge, ProviderRefused, ProviderUnavailable, SubmitUnknown
from nightmill.domain.snapshots import BatchStatus, Found, Snapshot
from nightmill.domain.states import BatchState, ProviderBatchState
from nightmill.domain.step_facts import Call, HeldBack, NoRoom, Refused, Seen, TooLarge, Unanswered, Unreachable
from nightmill.domain.step_questions import UNKNOWN_STATUS
from nightmill.domain.wording import pluralised
from nightmill.providers.port import Handle, SentCreate
from nightmill.stages.run_shard import render, throttle
from nightmill.stages.run_shard.collect import Collection
from nightmill.stages.run_shard.wake_up import WakeUp
from nightmill.storage import batches, provider_batches, sending
from nightmill.storage.fence import writing
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.session import reading

T = TypeVar("T")
_SENDS = (Call.STAGE, Call.CREATE)
_FOLLOWED = timedelta(days=2)  # before a create call: batches of ours that one of the same size could be taken for


@dataclass
class Course:
    """One provider batch on its way through a wake-up: its row as it is now, what the last call told, its request file
    and its results, as far as they are here."""

    one: ProviderBatch
    file: render.RequestFile | None = None
    seen: Seen = None
    collection: Collection | None = None

    def requests(self, wake_up: WakeUp) -> Path:
        """Its request file, rendered again where this wake-up did not make it."""
        if self.file is None:
            self.file = render.rerender(wake_up, self.one)
        return self.file.path


def answer(wake_up: WakeUp, course: Course, call: Call, question: Callable[[], T]) -> T | None:
    """What a call answers, or None: then `course.seen` says what came of it. Leaves the provider alone where it asks
    for that."""
    course.seen = None
    try:
        return question()
    except (SubmitUnknown, ProviderUnavailable) as fault:
        wake_up.conn.rollback()
        wake_up.leave_alone(fault.retry_after_s)
        course.seen = _unanswered(call, fault)
    except (AnswerTooLarge, ProviderRefused) as fault:
        wake_up.conn.rollback()
        course.seen = _refused(course.one, call, fault)
    return None


def _unanswered(call: Call, fault: SubmitUnknown | ProviderUnavailable) -> Seen:
    if isinstance(fault, SubmitUnknown):
        return Unanswered(fault.retry_after_s, fault.cause)
    if fault.limit is not None and call in _SENDS:
        return NoRoom(fault.limit, fault.retry_after_s)
    return Unreachable(call, fault.retry_after_s, fault.cause)


def _refused(one: ProviderBatch, call: Call, fault: AnswerTooLarge | ProviderRefused) -> Seen:
    if isinstance(fault, AnswerTooLarge):
        return Refused(call, fault.cause, fault.remedy)
    if fault.too_large is not None and call in _SENDS:
        return TooLarge(fault.too_large)
    cause = f"The provider refuses provider batch {one.provider_batch_id}: {fault.cause}"
    return Refused(call, cause, fault.remedy, fault.code or str(fault.status))


def stage(wake_up: WakeUp, course: Course) -> None:
    """Bring the requests to the provider, and commit their reference before anything can be created from it. What a
    worker staged that died before its create call is taken as it is."""
    path = course.requests(wake_up)
    ref = answer(wake_up, course, Call.STAGE, lambda: wake_up.transport.stage_input(path))
    if ref is not None:
        with writing(wake_up.conn, wake_up.holder):
            course.one = provider_batches.staged(wake_up.conn, wake_up.holder, course.one, ref)
    assert ref is not None or course.seen is not None, "an adapter whose input is staged returns a reference"


def create(wake_up: WakeUp, course: Course, *, again: bool) -> None:
    """Send the create call once, with a staged reference or the file itself. The edge right before it rechecks the
    fence, so that a zombie pays for nothing, and the account, which may refuse since a moment; it begins the quiet
    period. `again`: that edge was taken before."""
    requests = course.one.input_ref or course.requests(wake_up)
    if not again:
        with writing(wake_up.conn, wake_up.holder):
            is_admitted = throttle.admits(wake_up, course.one)
            if is_admitted:
                course.one = provider_batches.create_goes_out(
                    wake_up.conn, wake_up.holder, course.one, _window_end(wake_up)
                )
        if not is_admitted:
            course.seen = HeldBack()
            return
    token = course.one.token
    handle = answer(wake_up, course, Call.CREATE, lambda: wake_up.transport.create(requests, token))
    if handle is not None:
        _known(wake_up, course, handle, adopted=False)


def _window_end(wake_up: WakeUp) -> datetime | None:
    """When the provider ends by itself what is created now; it says more exactly when it has it."""
    window = wake_up.transport.capabilities.window
    return wake_up.env.now() + window if window is not None else None


def look_up(wake_up: WakeUp, course: Course) -> None:
    """Ask whether the provider took a create call that was never answered; adopt the batch where it did."""
    one = course.one
    assert one.creating_at is not None
    with reading(wake_up.conn):
        behind = provider_batches.clock_behind(wake_up.conn, one.account)
        known = sending.ids_made_since(wake_up.conn, one.account, one.creating_at - _FOLLOWED)
    sent = SentCreate(one.token, one.creating_at - behind, one.requests, one.input_ref, known)
    found = answer(wake_up, course, Call.LOOK_UP, lambda: wake_up.transport.lookup(sent))
    if isinstance(found, Found):
        if found.others:
            wake_up.note(f"provider batch {one.provider_batch_id}: {len(found.others) + 1} batches carry its token")
        _known(wake_up, course, found.snapshot, adopted=True)
    elif found is not None:
        course.seen = found


def poll(wake_up: WakeUp, course: Course, *, stop: bool) -> None:
    """Ask how it stands, and record it. What ended is looked at once more, because its counts and the names of its
    results can come later than its end."""
    before, provider_id = course.one, course.one.provider_id
    assert provider_id is not None

    def polled() -> Snapshot:
        if stop:
            wake_up.transport.cancel(provider_id)
        return wake_up.transport.poll(provider_id)

    snapshot = answer(wake_up, course, Call.POLL, polled)
    if snapshot is None:
        return
    course.seen = snapshot
    with writing(wake_up.conn, wake_up.holder):
        course.one = provider_batches.polled(wake_up.conn, wake_up.holder, before, snapshot, wake_up.env.now())
    if before.state is ProviderBatchState.SUBMITTED:
        wake_up.note(f"provider batch {before.provider_batch_id}: {_progress(snapshot)}")
        _follow_status(wake_up, course, before, snapshot.status)


def _follow_status(wake_up: WakeUp, course: Course, before: ProviderBatch, status: BatchStatus) -> None:
    """What a status tells beyond this one provider batch, and its end."""
    if status is BatchStatus.UNKNOWN:
        return
    if before.unknown_since is not None:
        _known_again(wake_up)
    if status is not BatchStatus.FAILED and before.taken_at is None and course.one.taken_at is not None:
        throttle.taken(wake_up, course.one)
    if status is BatchStatus.ENDED:
        with writing(wake_up.conn, wake_up.holder):
            course.one = provider_batches.ended(wake_up.conn, wake_up.holder, course.one)


def _known(wake_up: WakeUp, course: Course, there: Handle | Snapshot, *, adopted: bool) -> None:
    """Note that the provider has it, and under which id."""
    with writing(wake_up.conn, wake_up.holder):
        why = "adopted" if adopted else "created"
        course.one = provider_batches.created(wake_up.conn, wake_up.holder, course.one, there, why)
    how = "adopted" if adopted else "sent"
    requests = pluralised(course.one.requests, "request")
    wake_up.note(f"provider batch {course.one.provider_batch_id}: {how} {requests} as {there.provider_id}")


def _known_again(wake_up: WakeUp) -> None:
    """A status that had blocked the batch is known again: nothing else needs to be asked."""
    batch = batches.get(wake_up.conn, wake_up.batch.batch_id)
    if batch.state is BatchState.BLOCKED and UNKNOWN_STATUS in batch.state_reason:
        batches.unblock(wake_up.conn, batch, batch.blocked_by or "", "the provider's status is known again")
    wake_up.conn.commit()


def _progress(snapshot: Snapshot) -> str:
    total = "?" if snapshot.requests_total is None else snapshot.requests_total
    return f"{snapshot.raw_status} {snapshot.requests_done or 0}/{total}"

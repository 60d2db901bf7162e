"""Following one provider batch as far as it goes now: read its facts, decide, carry the step out, record what came of
it.

What happens when stands in `nightmill.domain.next_step`; here is one function for each step.
"""

from __future__ import annotations

import logging
from typing import assert_never

from nightmill.domain.errors import Blocked
from nightmill.domain.next_step import next_step
from nightmill.domain.snapshots import Snapshot, Unclear
from nightmill.domain.states import BatchState, ProviderBatchState
from nightmill.domain.step_facts import Call, Fetched, NoRoom, Refused, TooLarge, Unanswered, Unreachable
from nightmill.domain.steps import (
    AskPerson,
    Collect,
    Create,
    Done,
    GivenUp,
    GiveUp,
    LookUp,
    Poll,
    StageInput,
    Step,
    Wait,
    WaitsFor,
)
from nightmill.stages.run_shard import collect, facts_and_rules, provider_calls, refused_file, throttle
from nightmill.stages.run_shard.provider_calls import Course
from nightmill.stages.run_shard.render import RequestFile
from nightmill.stages.run_shard.wake_up import WakeUp
from nightmill.storage import batches, provider_batches
from nightmill.storage.fence import Holder, writing
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.session import Connection

log = logging.getLogger(__name__)


def provider_batch(wake_up: WakeUp, one: ProviderBatch, file: RequestFile | None = None) -> Step:
    """Take every next step of one provider batch, and return the one that it rests at. What keeps it waiting is noted
    in the wake-up. `file` is its rendered request file, if this wake-up made it just now.

    Raises Blocked where only a person can go on.
    """
    course = Course(one, file)
    while True:
        facts = facts_and_rules.facts_now(wake_up, course.one, course.seen)
        step = next_step(facts, course.seen, facts_and_rules.rules_of(wake_up, course.one), wake_up.env.now())
        match step:
            case StageInput():
                provider_calls.stage(wake_up, course)
            case Create(again=again):
                provider_calls.create(wake_up, course, again=again)
            case LookUp():
                provider_calls.look_up(wake_up, course)
            case Poll(stop=stop):
                provider_calls.poll(wake_up, course, stop=stop)
            case Collect():
                _collect(wake_up, course)
            case GiveUp():
                _give_up(wake_up, course, step)
            case Wait():
                _wait(wake_up, course, step)
                return step
            case AskPerson():
                _ask(wake_up, step)
                return step
            case Done():
                return step
            case _:
                assert_never(step)


def _collect(wake_up: WakeUp, course: Course) -> None:
    """Fetch its results; settle them where none is missing, or where what is missing counts as lost by now."""
    if not isinstance(course.seen, Fetched):
        course.collection = collect.Collection(wake_up, course.one)
        missing = provider_calls.answer(wake_up, course, Call.FETCH, course.collection.fetch)
        if missing is None:
            return
        if missing:
            course.seen = Fetched(missing)
            return
    assert course.collection is not None
    collected = provider_calls.answer(wake_up, course, Call.FETCH, course.collection.settle)
    course.one = collected or course.one


def _give_up(wake_up: WakeUp, course: Course, step: GiveUp) -> None:
    """Give it up, and learn from why. Raises Blocked where a person has to act besides."""
    match course.seen:
        case NoRoom(limit=limit, retry_after_s=retry_after_s) if step.why is GivenUp.NO_ROOM:
            course.one = throttle.refused(wake_up, course.one, limit, retry_after_s)
        case TooLarge(found=found) if step.why is GivenUp.TOO_LARGE:
            course.one = refused_file.too_large(wake_up, course.one, found)
        case Snapshot(complaints=complaints) if step.why is GivenUp.REFUSED_FILE:
            course.one = refused_file.handle(wake_up, course.one, complaints)
        case _:
            _abandon(wake_up, course, step)
    if step.ask is not None:
        raise Blocked(step.ask.cause, step.ask.remedy)


def _abandon(wake_up: WakeUp, course: Course, step: GiveUp) -> None:
    one, seen = course.one, course.seen
    if step.discard_input and not _discarded(wake_up, course):
        return
    reason = str(step.why)
    if step.why is GivenUp.CREATE_REFUSED and isinstance(seen, Refused):
        reason += f": {seen.code}"
    elif step.why is GivenUp.NEVER_WOUND_DOWN:
        course.one = give_up_waiting(wake_up.conn, wake_up.holder, one)
        wake_up.note(told_of_given_up(one), alarm=True)
        return
    elif step.why is GivenUp.NOT_TAKEN and isinstance(seen, Unreachable):
        _note_unreachable(wake_up, one, seen)
        wake_up.look_again_in(wake_up.live.provider.poll_interval_s)
    wake_up.send_nothing = wake_up.send_nothing or step.why in (GivenUp.NOT_TAKEN, GivenUp.UNSENT_PROBING)
    course.one = refused_file.abandon(wake_up, one, reason)


def give_up_waiting(conn: Connection, holder: Holder, one: ProviderBatch) -> ProviderBatch:
    """Give up what a cancelled batch has at the provider and what could not be ended and collected in time: it holds no
    tokens and no items any more."""
    with writing(conn, holder):
        return provider_batches.abandoned(conn, holder, one, f"cancelled, and still {one.state} after its time")


def told_of_given_up(one: ProviderBatch) -> str:
    """What a person hears of it."""
    return f"provider batch {one.provider_batch_id}: given up, look at {one.provider_id or 'it'} at the provider"


def _discarded(wake_up: WakeUp, course: Course) -> bool:
    """Delete the staged input. Of a create call that may still be on its way it must be gone before its items are sent
    again; of one that never went out it is only tidier."""
    ref = course.one.input_ref
    if ref is None or course.one.state is ProviderBatchState.INTENT:
        collect.discard_input(wake_up, course.one)
        return True

    def discard() -> bool:
        wake_up.transport.discard_input(ref)
        return True

    return provider_calls.answer(wake_up, course, Call.DISCARD, discard) is not None


def _wait(wake_up: WakeUp, course: Course, step: Wait) -> None:
    """Note what it waits for, and when to look again."""
    name, seen = f"provider batch {course.one.provider_batch_id}", course.seen
    wake_up.wake_times.append(step.look_again)
    wake_up.send_nothing = wake_up.send_nothing or step.sends_nothing
    until = f"{step.latest:%Y-%m-%d %H:%M} UTC"
    match step.what:
        case WaitsFor.UNBLOCKED:
            wake_up.note(f"{name} is not sent: the batch is BLOCKED")
        case WaitsFor.CREATE_SEEN if isinstance(seen, Unanswered):
            wake_up.note(
                f"{name}: the create call ended without an answer, looking for it at the provider next time: "
                f"{seen.cause}"
            )
        case WaitsFor.CREATE_SEEN | WaitsFor.CANDIDATES:
            proof = f", and that proves nothing: {seen.why}" if isinstance(seen, Unclear) else ""
            wake_up.note(f"{name}: not seen at the provider so far{proof}")
        case WaitsFor.STATUS:
            wake_up.note(f"nobody knows this status: it is polled until {until}, nothing more is sent")
        case WaitsFor.RESULTS:
            wake_up.note(
                f"what is missing is waited for until {step.latest:%H:%M:%S} UTC, and not asked for again before"
            )
        case WaitsFor.PROVIDER:
            assert isinstance(seen, Unreachable)
            _note_unreachable(wake_up, course.one, seen)
        case WaitsFor.END | WaitsFor.STOPPED:
            pass  # how it stands was noted when it was polled
        case _:
            assert_never(step.what)


def _note_unreachable(wake_up: WakeUp, one: ProviderBatch, seen: Unreachable) -> None:
    wake_up.note(f"provider batch {one.provider_batch_id}: provider not reachable: {seen.cause}")


def _ask(wake_up: WakeUp, step: AskPerson) -> None:
    """Ask a person. Raises Blocked unless the provider may answer the question itself; then it is looked at again, and
    the batch sends nothing meanwhile where the question blocks it."""
    if step.look_again is None:
        raise Blocked(step.cause, step.remedy)
    wake_up.wake_times.append(step.look_again)
    wake_up.send_nothing = True
    if not step.blocks:
        wake_up.note(step.cause, alarm=True)
        return
    batch = batches.get(wake_up.conn, wake_up.batch.batch_id)
    if batch.state is BatchState.RUNNING:
        batches.block(wake_up.conn, batch, wake_up.name, step.cause)
        log.warning("ALERT: batch %s is BLOCKED: %s %s", batch.batch_id, step.cause, step.remedy)
    wake_up.conn.commit()
    wake_up.note("nobody knows this status: a person is asked, and it is polled on")

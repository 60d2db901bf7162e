"""The truth table of run_shard: what happens next to one provider batch.

`next_step` is pure and total. The same facts at the same time give the same step, whoever asks and however often: a
first run, a retry, a resumed worker, a person who clears the task, the sweep that winds a cancelled batch down, and a
page that explains what is waited for.
"""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from nightmill.domain.capabilities import Lookup
from nightmill.domain.snapshots import Absent, BatchStatus, Snapshot, Unclear
from nightmill.domain.states import ProviderBatchState
from nightmill.domain.step_facts import (
    Blocked,
    Broken,
    Call,
    Facts,
    Fetched,
    HeldBack,
    MaySend,
    NoRoom,
    Refused,
    Rules,
    Seen,
    TooLarge,
    Unanswered,
    Unreachable,
)
from nightmill.domain.step_questions import (
    answers_unnamed,
    asked_of_a_call,
    breaker_open,
    cannot_tell,
    never_unblocked,
    not_wound_down,
    other_account,
    overdue,
    results_gone,
    unknown_status,
)
from nightmill.domain.step_waits import looked_for_until, until, wait_for_answer, without_answer
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


def next_step(facts: Facts, seen: Seen, rules: Rules, now: datetime) -> Step:
    """What to do with it now. `seen` is what the last call of this wake-up told, None before the first one."""
    step = _next(facts, seen, rules, now)
    if rules.winding_down and isinstance(step, Wait | AskPerson):
        return _wound_down(facts, step, rules, now)
    return step


def _next(facts: Facts, seen: Seen, rules: Rules, now: datetime) -> Step:
    match facts.state:
        case ProviderBatchState.INTENT:
            return _not_sent(facts, seen, rules, now)
        case ProviderBatchState.CREATING:
            return _create_went_out(facts, seen, rules, now)
        case ProviderBatchState.SUBMITTED:
            return _at_provider(facts, seen, rules, now)
        case ProviderBatchState.ENDED:
            return _ended(facts, seen, rules, now)
        case ProviderBatchState.COLLECTED | ProviderBatchState.ABANDONED:
            return Done(facts.state)
        case _:
            assert_never(facts.state)


def _not_sent(facts: Facts, seen: Seen, rules: Rules, now: datetime) -> Step:
    """The intent is committed, and nothing can have been paid."""
    staged = facts.input_ref is not None
    if rules.winding_down:
        return GiveUp(GivenUp.UNSENT_CANCELLED, discard_input=staged)
    if facts.account != rules.account:
        return GiveUp(GivenUp.UNSENT_ACCOUNT)  # the other account's input cannot be deleted with this one's key
    match seen:
        case NoRoom():
            return GiveUp(GivenUp.NO_ROOM)
        case TooLarge():
            return GiveUp(GivenUp.TOO_LARGE)
        case HeldBack():
            return GiveUp(GivenUp.UNSENT_PROBING, discard_input=staged)
        case Refused():
            return asked_of_a_call(facts, seen)
        case Unreachable():
            return without_answer(facts, seen, rules, now)
        case _:
            return _may_send(facts, rules, now)


def _may_send(facts: Facts, rules: Rules, now: datetime) -> Step:
    match rules.sending:
        case Blocked(since=since):
            if now > since + rules.abandoned_after:
                return never_unblocked(facts, since)
            return until(WaitsFor.UNBLOCKED, now, rules.blocked_pause, since + rules.abandoned_after)
        case Broken(cause=cause, remedy=remedy):
            return breaker_open(facts, cause, remedy)
        case MaySend():
            return StageInput() if rules.capabilities.stages_input and facts.input_ref is None else Create()
        case _:
            assert_never(rules.sending)


def _create_went_out(facts: Facts, seen: Seen, rules: Rules, now: datetime) -> Step:
    """Its create call may have been taken, and then it is being paid for."""
    match seen:
        case NoRoom():
            return GiveUp(GivenUp.NO_ROOM)
        case TooLarge():
            return GiveUp(GivenUp.TOO_LARGE)
        case Refused(call=Call.CREATE):
            return GiveUp(GivenUp.CREATE_REFUSED, ask=asked_of_a_call(facts, seen))
        case Unreachable(call=Call.CREATE):
            return GiveUp(GivenUp.NOT_TAKEN)
        case Refused():
            return asked_of_a_call(facts, seen)
        case Unreachable():
            return without_answer(facts, seen, rules, now)
        case Unanswered(retry_after_s=retry_after_s) if now <= (latest := looked_for_until(facts, rules)):
            return wait_for_answer(WaitsFor.CREATE_SEEN, rules, now, retry_after_s, latest)
        case Absent() | Unclear():
            return _not_found(facts, seen, rules, now)
        case _ if rules.capabilities.lookup is Lookup.NONE:
            return _not_found(facts, Unclear("the provider cannot look for a batch", can_change=False), rules, now)
        case _:
            return LookUp()


def _not_found(facts: Facts, seen: Absent | Unclear, rules: Rules, now: datetime) -> Step:
    """It is given up only where it is surely absent. What cannot be proved is asked, and never paid again in silence.

    What is given up is sent anew with an intent of its own, so that the next create has a quiet period of its own.
    """
    if facts.account != rules.account:
        return other_account(facts, rules)
    created = facts.creating_at or facts.intent_at
    quiet_until = created + rules.absent_after
    if now < quiet_until and rules.capabilities.create_is_idempotent and _sends(rules):
        return Create(again=True)
    if isinstance(seen, Absent):
        if now >= quiet_until:
            return GiveUp(GivenUp.ABSENT, discard_input=rules.capabilities.stages_input and facts.input_ref is not None)
        return until(WaitsFor.CREATE_SEEN, now, rules.poll_interval, quiet_until)
    if seen.candidates:
        ask_at = rules.window_end(facts) + rules.slack  # it has ended by then, and the ids in its results tell
        if now < ask_at:
            return until(WaitsFor.CANDIDATES, now, rules.poll_interval * rules.running_factor, ask_at)
        return cannot_tell(facts, seen)
    ask_at = quiet_until + rules.unproven if seen.can_change else quiet_until
    if now < ask_at:
        return until(WaitsFor.CREATE_SEEN, now, rules.poll_interval, ask_at)
    return cannot_tell(facts, seen)


def _at_provider(facts: Facts, seen: Seen, rules: Rules, now: datetime) -> Step:
    """The provider has it, under an id that we know."""
    match seen:
        case Snapshot(status=BatchStatus.FAILED):
            return GiveUp(GivenUp.REFUSED_FILE)
        case Refused():
            return asked_of_a_call(facts, seen)
        case Unreachable():
            return _not_ended(facts, seen, rules, now)
        case Snapshot(status=BatchStatus.WAITING | BatchStatus.RUNNING | BatchStatus.UNKNOWN):
            return _not_ended(facts, seen, rules, now)
        case _:
            return Poll(stop=rules.winding_down)


def _not_ended(facts: Facts, seen: Snapshot | Unreachable, rules: Rules, now: datetime) -> Step:
    late_at = rules.late_at(facts)
    if now > late_at and not rules.winding_down:
        return overdue(facts, rules)
    late_at = max(late_at, now)
    match seen:
        case Unreachable(retry_after_s=retry_after_s):
            return wait_for_answer(WaitsFor.PROVIDER, rules, now, retry_after_s, late_at)
        case Snapshot(status=BatchStatus.UNKNOWN):
            return _status_unknown(facts, rules, now, late_at)
        case Snapshot():
            factor = rules.probe_factor if facts.is_probe else rules.running_factor
            what = WaitsFor.STOPPED if rules.winding_down else WaitsFor.END
            pause = rules.poll_interval * factor
            return until(what, now, pause, late_at, sends_nothing=facts.stopped_by_hand)
        case _:
            assert_never(seen)


def _status_unknown(facts: Facts, rules: Rules, now: datetime, late_at: datetime) -> Step:
    """Nothing more is sent while nobody knows what the status means. After the declared time a person is asked; it is
    polled all the same, so that it goes on by itself once the status is known again."""
    since = facts.unknown_since or facts.since
    ask_at = since + rules.unknown_status
    pause = max(rules.poll_interval * rules.unknown_factor, (now - since) * rules.unknown_share)
    pause = min(pause, rules.unknown_slowest)
    if now < ask_at:
        return until(WaitsFor.STATUS, now, pause, min(ask_at, late_at), sends_nothing=True)
    return unknown_status(facts, since, look_again=now + pause)


def _ended(facts: Facts, seen: Seen, rules: Rules, now: datetime) -> Step:
    """The provider executes nothing more of it. Its counts and its results can come later than its end."""
    match seen:
        case Fetched(missing=missing):
            return _answers_missing(facts, missing, rules, now)
        case Refused(call=Call.FETCH) if facts.results_until is not None and now >= facts.results_until:
            return results_gone(facts, facts.results_until)
        case Unreachable(call=Call.POLL, retry_after_s=None) | Refused(call=Call.POLL) if facts.results_named:
            return Collect()  # what is known already is taken where it cannot be asked again
        case Unreachable():
            return without_answer(facts, seen, rules, now)
        case Refused():
            return asked_of_a_call(facts, seen)
        case Snapshot():
            return Collect()
        case _:
            return Poll()


def _answers_missing(facts: Facts, missing: int, rules: Rules, now: datetime) -> Step:
    """Nothing is asked for again before a grace has passed since its end was first seen: providers do not update a
    batch, its counts and its results at one moment."""
    if not missing or _owes_none(facts, missing):
        return Collect(lose_missing=True)
    since = facts.over_at or facts.since
    waits_until = since + rules.results_grace
    if now < waits_until:
        pause = max(rules.poll_interval, now - since)
        return until(WaitsFor.RESULTS, now, pause, waits_until, sends_nothing=facts.stopped_by_hand)
    is_late = facts.submitted_at is None or now > rules.late_at(facts)
    if facts.answered and not facts.answers_named and not is_late:
        return answers_unnamed(facts, rules)
    return Collect(lose_missing=True)


def _owes_none(facts: Facts, missing: int) -> bool:
    """A batch that was stopped or ran out of time may leave out what it did not execute, where its counts and its
    results agree on the rest. Before it has either, it says nothing."""
    agrees = facts.total == facts.requests and 0 < (facts.finished or 0) <= facts.requests - missing
    return facts.stopped is not None and facts.results_named and agrees


def _wound_down(facts: Facts, step: Wait | AskPerson, rules: Rules, now: datetime) -> Step:
    """Nobody clears a task of a cancelled batch: it is looked at again by the next sweep, and given up in the end."""
    if found := not_ended_in_time(facts, rules, now):
        return found
    if isinstance(step, Wait):
        return step
    return AskPerson(step.cause, step.remedy, step.command, now + rules.poll_interval, blocks=False)


def not_ended_in_time(facts: Facts, rules: Rules, now: datetime) -> AskPerson | GiveUp | None:
    """What becomes of a provider batch of a cancelled batch, whatever can be asked of it; None before its time is over.
    One that the provider still has is followed as long as its results are kept there."""
    if now <= max(facts.since + rules.late_after, rules.late_at(facts)):
        return None
    if facts.state is ProviderBatchState.SUBMITTED and now <= rules.kept_until(facts):
        return not_wound_down(facts, look_again=now + rules.poll_interval)
    return GiveUp(GivenUp.NEVER_WOUND_DOWN)


def _sends(rules: Rules) -> bool:
    return isinstance(rules.sending, MaySend) and not rules.winding_down

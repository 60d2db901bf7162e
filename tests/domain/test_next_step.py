"""What next_step says in the situations that providers are known for; C numbers are field cases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from support.step_examples import (
    CREATING,
    ENDED,
    GUESSES,
    HOUR,
    INTENT,
    MINUTE,
    PROVES,
    REPEATS,
    RULES,
    SECOND,
    SENT,
    STAGED,
    START,
    shown,
)

from nightmill.domain.capabilities import Capabilities, Input, Lookup
from nightmill.domain.next_step import next_step
from nightmill.domain.snapshots import Absent, BatchStatus, Stopped, Unclear
from nightmill.domain.step_facts import (
    Blocked,
    Broken,
    Call,
    Facts,
    Fetched,
    HeldBack,
    Refused,
    Rules,
    Seen,
    Unanswered,
    Unreachable,
)
from nightmill.domain.steps import (
    AskPerson,
    Collect,
    Create,
    GivenUp,
    GiveUp,
    LookUp,
    Poll,
    StageInput,
    Step,
    Wait,
    WaitsFor,
)

RUNNING, UNKNOWN = shown(BatchStatus.RUNNING), shown(BatchStatus.UNKNOWN)
QUIET = timedelta(seconds=240)  # create timeout and quiet period of RULES
TWO = (shown(BatchStatus.RUNNING, "b1"), shown(BatchStatus.RUNNING, "b2"))
CANCELLED = replace(RULES, winding_down=True)


def step(facts: Facts, seen: Seen = None, rules: Rules = RULES, after: timedelta = timedelta()) -> Step:
    return next_step(facts, seen, rules, START + after)


def rules(capabilities: Capabilities) -> Rules:
    return replace(RULES, capabilities=capabilities)


def test_the_plain_way_is_stage_create_poll_collect() -> None:
    assert [step(INTENT), step(STAGED), step(SENT), step(ENDED), step(ENDED, shown(BatchStatus.ENDED))] == [
        StageInput(),
        Create(),
        Poll(),
        Poll(),
        Collect(),
    ]


def test_where_requests_travel_in_the_create_call_nothing_is_staged() -> None:
    assert step(INTENT, rules=rules(GUESSES)) == Create()


def test_a_cancelled_batch_sends_nothing_and_asks_the_provider_to_stop_what_it_has() -> None:
    assert step(STAGED, rules=CANCELLED) == GiveUp(GivenUp.UNSENT_CANCELLED, discard_input=True)
    assert step(SENT, rules=CANCELLED) == Poll(stop=True)
    waits = step(SENT, RUNNING, CANCELLED)
    assert isinstance(waits, Wait)
    assert waits.what is WaitsFor.STOPPED


def test_what_a_cancelled_batch_has_there_is_followed_as_long_as_its_results_are_kept_and_then_given_up() -> None:
    assert isinstance(step(SENT, RUNNING, CANCELLED, 48 * HOUR), Wait)
    told = step(SENT, RUNNING, CANCELLED, 49 * HOUR)
    assert isinstance(told, AskPerson)
    assert told.look_again is not None
    assert step(SENT, RUNNING, CANCELLED, timedelta(days=31)) == GiveUp(GivenUp.NEVER_WOUND_DOWN)
    assert step(CREATING, Unreachable(Call.LOOK_UP), CANCELLED, 49 * HOUR) == GiveUp(GivenUp.NEVER_WOUND_DOWN)


def test_nothing_is_sent_for_a_blocked_batch_and_its_breaker_asks() -> None:
    waits = step(STAGED, rules=replace(RULES, sending=Blocked(START)))
    assert waits == Wait(WaitsFor.UNBLOCKED, START + 5 * MINUTE, START + timedelta(days=7))
    asks = step(STAGED, rules=replace(RULES, sending=Broken("All failed.", "Correct the prompt.")))
    assert isinstance(asks, AskPerson)
    assert (asks.cause, asks.remedy, asks.look_again) == ("All failed.", "Correct the prompt.", None)


def test_a_file_that_is_not_the_account_s_probe_is_not_sent() -> None:
    assert step(STAGED, HeldBack()) == GiveUp(GivenUp.UNSENT_PROBING, discard_input=True)


def test_a_create_without_a_reply_is_looked_up_and_sent_again_only_once_it_is_absent_after_the_quiet_period() -> None:
    """C37"""
    assert isinstance(step(CREATING, Unanswered()), Wait)
    assert step(CREATING) == LookUp()
    waits = step(CREATING, Absent(), after=QUIET - SECOND)
    assert waits == Wait(WaitsFor.CREATE_SEEN, START + QUIET + SECOND, START + QUIET)
    assert step(CREATING, Absent(), after=QUIET) == GiveUp(GivenUp.ABSENT, discard_input=True)


def test_where_the_job_names_no_quiet_period_the_provider_s_own_grace_counts() -> None:
    """C23"""
    patient = replace(rules(replace(PROVES, absence_grace=15 * MINUTE)), quiet_period=None)
    assert isinstance(step(CREATING, Absent(), patient, 16 * MINUTE - SECOND), Wait)
    assert isinstance(step(CREATING, Absent(), patient, 16 * MINUTE), GiveUp)


@pytest.mark.parametrize(
    ("seen", "capabilities", "asked_after"),
    [
        (Unclear("its listing repeats entries"), PROVES, QUIET + HOUR),
        (Unclear("it has no listing", can_change=False), PROVES, QUIET),
        (Unclear("it may be one of two", candidates=TWO), GUESSES, 30 * HOUR),
        (None, replace(PROVES, lookup=Lookup.NONE), QUIET),
    ],
)
def test_a_create_that_cannot_be_proved_waits_and_is_asked_and_never_paid_again_in_silence(
    seen: Seen, capabilities: Capabilities, asked_after: timedelta
) -> None:
    """C41"""
    waits = step(CREATING, seen, rules(capabilities), asked_after - SECOND)
    assert isinstance(waits, Wait)
    assert waits.latest == START + asked_after
    asks = step(CREATING, seen, rules(capabilities), asked_after)
    assert isinstance(asks, AskPerson)
    assert asks.command == "python -m nightmill lost-create --provider-batch 7"
    assert "--taken-as ID" in asks.remedy
    assert step(CREATING, seen, rules(capabilities), timedelta(days=900)) == asks


def test_candidates_are_named_to_the_person_who_is_asked() -> None:
    asks = step(CREATING, Unclear("two may be it", candidates=TWO), rules(GUESSES), 31 * HOUR)
    assert isinstance(asks, AskPerson)
    assert "b1, b2" in asks.remedy


def test_not_finding_it_with_another_key_proves_nothing() -> None:
    """C26"""
    asks = step(CREATING, Absent(), replace(RULES, account="theirs"), timedelta(days=3))
    assert isinstance(asks, AskPerson)
    assert "another account or key" in asks.cause


def test_where_the_provider_takes_two_calls_with_one_token_for_one_the_call_is_repeated_in_the_quiet_period() -> None:
    assert step(CREATING, Absent(), rules(REPEATS)) == Create(again=True)
    assert step(CREATING, Absent(), rules(REPEATS), QUIET) == GiveUp(GivenUp.ABSENT, discard_input=True)
    stopped = replace(rules(REPEATS), winding_down=True)
    assert isinstance(step(CREATING, Absent(), stopped), Wait)


def test_a_create_that_is_refused_gives_the_file_up_and_asks() -> None:
    refused = step(CREATING, Refused(Call.CREATE, "It knows no model x.", "Correct provider.model."))
    assert isinstance(refused, GiveUp)
    assert refused.why is GivenUp.CREATE_REFUSED
    assert refused.ask is not None
    assert step(CREATING, Unreachable(Call.CREATE)) == GiveUp(GivenUp.NOT_TAKEN)


def test_a_running_batch_is_looked_at_rarely_and_the_account_s_probe_often() -> None:
    assert step(SENT, RUNNING) == Wait(WaitsFor.END, START + 600 * SECOND, START + 48 * HOUR)
    probe = step(replace(SENT, is_probe=True), RUNNING)
    assert isinstance(probe, Wait)
    assert probe.look_again == START + 60 * SECOND


def test_a_batch_that_never_ends_is_asked_about_whatever_the_provider_shows() -> None:
    """C16, C17, C28"""
    for seen in (RUNNING, shown(BatchStatus.WAITING), UNKNOWN, Unreachable(Call.POLL)):
        asks = step(SENT, seen, after=48 * HOUR + SECOND)
        assert isinstance(asks, AskPerson)
        assert asks.look_again is None
    slow = rules(replace(PROVES, window=timedelta(days=7)))
    assert isinstance(step(SENT, RUNNING, slow, timedelta(days=8)), Wait)
    told = replace(SENT, window_ends_at=START + timedelta(days=9))
    assert isinstance(step(told, RUNNING, after=timedelta(days=10)), Wait)


def test_an_unknown_status_is_polled_with_growing_pauses_then_asked_and_polled_on() -> None:
    odd = replace(SENT, raw_status="paused", unknown_since=START)
    first, later = step(odd, UNKNOWN), step(odd, UNKNOWN, after=40 * MINUTE)
    assert isinstance(first, Wait)
    assert isinstance(later, Wait)
    assert (first.look_again - START, later.look_again - START) == (2 * MINUTE, 50 * MINUTE)
    assert first.sends_nothing
    asks = step(odd, UNKNOWN, after=6 * HOUR)
    assert isinstance(asks, AskPerson)
    assert asks.look_again == START + 6 * HOUR + 15 * MINUTE
    assert "'paused'" in asks.cause


def test_a_provider_that_asks_to_be_left_alone_is_left_alone_for_a_day_at_most() -> None:
    """C38"""
    waits = step(SENT, Unreachable(Call.POLL, retry_after_s=3600))
    assert isinstance(waits, Wait)
    assert waits.look_again == START + HOUR
    waits = step(STAGED, Unreachable(Call.STAGE, retry_after_s=10**7))
    assert isinstance(waits, Wait)
    assert waits.look_again == START + 24 * HOUR


def test_a_provider_out_of_reach_is_tried_on_after_its_deadline_and_a_person_knows() -> None:
    asks = step(STAGED, Unreachable(Call.STAGE), after=6 * HOUR + SECOND)
    assert isinstance(asks, AskPerson)
    assert (asks.blocks, asks.look_again) == (False, START + 6 * HOUR + 31 * SECOND)


def test_answers_that_an_ended_batch_owes_are_waited_for_within_the_grace_and_then_count_as_lost() -> None:
    """C04, C08"""
    waits = step(ENDED, Fetched(3), after=5 * MINUTE)
    assert isinstance(waits, Wait)
    assert (waits.what, waits.look_again, waits.latest) == (
        WaitsFor.RESULTS, START + 10 * MINUTE, START + 15 * MINUTE,
    )  # fmt: skip
    assert step(ENDED, Fetched(3), after=15 * MINUTE) == Collect(lose_missing=True)


def test_what_a_stopped_or_expired_batch_did_not_execute_is_not_waited_for() -> None:
    """C05"""
    cut = replace(ENDED, stopped=Stopped.EXPIRED, finished=97)
    assert step(cut, Fetched(3)) == Collect(lose_missing=True)
    assert isinstance(step(replace(cut, finished=98), Fetched(3)), Wait)


def test_paid_answers_in_results_that_are_never_named_are_asked_about_before_they_count_as_lost() -> None:
    """C04"""
    unnamed = replace(ENDED, results_named=False, answers_named=False)
    asks = step(unnamed, Fetched(100), after=HOUR)
    assert isinstance(asks, AskPerson)
    assert "100 answers, which are paid for" in asks.cause
    assert step(unnamed, Fetched(100), after=48 * HOUR + SECOND) == Collect(lose_missing=True)


def test_what_an_ended_batch_named_is_collected_where_it_cannot_be_asked_again() -> None:
    assert step(ENDED, Unreachable(Call.POLL)) == Collect()
    assert isinstance(step(ENDED, Unreachable(Call.POLL, retry_after_s=60)), Wait)
    assert isinstance(step(ENDED, Unreachable(Call.FETCH)), Wait)
    assert isinstance(step(replace(ENDED, results_named=False, answers_named=False), Unreachable(Call.POLL)), Wait)


def test_results_that_the_provider_keeps_no_longer_are_asked_about() -> None:
    kept = replace(ENDED, results_until=START + timedelta(days=29))
    refused = Refused(Call.FETCH, "It has no such file.", "Look there.")
    asks = step(kept, refused, after=timedelta(days=29))
    assert isinstance(asks, AskPerson)
    assert "kept until 2026-01-30" in asks.cause
    before = step(kept, refused, after=timedelta(days=28))
    assert isinstance(before, AskPerson)
    assert before.cause == "It has no such file."


def test_looking_at_results_once_more_never_leads_back_to_looking() -> None:
    for facts in (ENDED, replace(ENDED, stopped=Stopped.CANCELLED, finished=97)):
        for after in (timedelta(), HOUR, timedelta(days=3)):
            for missing in (0, 3, 100):
                found = step(facts, Fetched(missing), after=after)
                assert found == Collect(lose_missing=True) or isinstance(found, Wait | AskPerson)


def test_input_of_a_store_is_staged_like_a_file() -> None:
    assert step(INTENT, rules=rules(replace(PROVES, input=Input.STORE))) == StageInput()

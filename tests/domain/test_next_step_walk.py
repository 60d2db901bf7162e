"""Every combination of state, status, capability and age: next_step answers each, and each answer is well-formed."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path

import pytest
from support.step_examples import (
    ABANDONED,
    COLLECTED,
    CREATING,
    ENDED,
    HOUR,
    INTENT,
    RULES,
    SECOND,
    SENT,
    STAGED,
    START,
    shown,
)

from nightmill.domain.capabilities import Capabilities, Input, Lookup
from nightmill.domain.limits import Dimensions
from nightmill.domain.next_step import next_step
from nightmill.domain.snapshots import Absent, BatchStatus, Stopped, Unclear
from nightmill.domain.states import ProviderBatchState
from nightmill.domain.step_facts import (
    Blocked,
    Broken,
    Call,
    Facts,
    Fetched,
    HeldBack,
    NoRoom,
    Refused,
    Rules,
    Seen,
    TooLarge,
    Unanswered,
    Unreachable,
)
from nightmill.domain.steps import (
    ENDINGS,
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

Combination = tuple[Facts, Seen, Rules, datetime]
STATUSES: Sequence[Seen] = (
    None,
    *(shown(status) for status in BatchStatus),
    Absent(),
    Unclear("its listing repeats entries"),
    Unclear("it has no listing", can_change=False),
    Unclear("two may be it", candidates=(shown(BatchStatus.RUNNING), shown(BatchStatus.ENDED))),
    Unanswered(),
    *map(Unreachable, Call),
    *(Refused(call, "It refuses.", "Correct it.") for call in Call),
    NoRoom(),
    TooLarge(Dimensions(bytes=True, requests=False)),
    HeldBack(),
    Fetched(0),
    Fetched(3),
)
CAPABILITIES = [
    Capabilities(idempotent, lookup, grace, given, 50_000, 10**9, window=window)
    for idempotent, lookup, given, (grace, window) in product(
        (False, True), Lookup, Input, ((timedelta(), timedelta(hours=24)), (HOUR, timedelta(days=7)))
    )
]
SITUATIONS = {  # what differs in the rules; the states where it matters
    "open": (RULES, set(ProviderBatchState)),
    "winding down": (replace(RULES, winding_down=True), set(ProviderBatchState)),
    "blocked": (replace(RULES, sending=Blocked(START)), {ProviderBatchState.INTENT, ProviderBatchState.CREATING}),
    "broken": (
        replace(RULES, sending=Broken("All failed.", "Correct it.")),
        {ProviderBatchState.INTENT, ProviderBatchState.CREATING},
    ),
    "other account": (replace(RULES, account="theirs"), {ProviderBatchState.INTENT, ProviderBatchState.CREATING}),
}
FACTS = (
    INTENT,
    STAGED,
    CREATING,
    replace(CREATING, input_ref=None),
    SENT,
    replace(SENT, window_ends_at=START + 12 * HOUR, results_until=START + 29 * 24 * HOUR),
    replace(SENT, raw_status="paused", unknown_since=START, stopped_by_hand=True, is_probe=True),
    ENDED,
    replace(ENDED, answers_named=False, results_until=START + 29 * 24 * HOUR),
    replace(ENDED, results_named=False, answers_named=False, answered=None, finished=None, total=None),
    replace(ENDED, raw_status="cancelled", stopped=Stopped.CANCELLED, finished=97, stopped_by_hand=True),
    COLLECTED,
    ABANDONED,
)
LEGAL: dict[ProviderBatchState, tuple[type[Step], ...]] = {
    ProviderBatchState.INTENT: (StageInput, Create, GiveUp, AskPerson, Wait),
    ProviderBatchState.CREATING: (LookUp, Create, GiveUp, AskPerson, Wait),
    ProviderBatchState.SUBMITTED: (Poll, GiveUp, AskPerson, Wait),
    ProviderBatchState.ENDED: (Poll, Collect, GiveUp, AskPerson, Wait),
    ProviderBatchState.COLLECTED: (Done,),
    ProviderBatchState.ABANDONED: (Done,),
}
COMMANDS = ("cancel --batch 3", "lost-create --provider-batch 7", "status", "doctor", "maintain")


def boundaries(rules: Rules, facts: Facts) -> list[datetime]:
    """The moment it began, and of each rule that can hold in its state the second before, the moment and the second
    after."""
    window, late = rules.window_end(facts) - START, rules.late_at(facts) - START
    followed = rules.kept_until(facts) - START
    of_state = {
        ProviderBatchState.INTENT: (rules.slack, rules.abandoned_after, late),
        ProviderBatchState.CREATING: (
            rules.slack,
            rules.absent_after,
            rules.absent_after + rules.unproven,
            window + rules.slack,
            late,
        ),
        ProviderBatchState.SUBMITTED: (rules.unknown_status, late, followed),
        ProviderBatchState.ENDED: (rules.results_grace, rules.slack, late, followed),
    }
    spans = {span + by for span in of_state.get(facts.state, ()) for by in (-SECOND, timedelta(), SECOND)}
    return [START, *(START + span for span in sorted(spans))]


def combinations(of: Collection[ProviderBatchState] = ProviderBatchState) -> Iterator[Combination]:
    for base, states in SITUATIONS.values():
        for capabilities in CAPABILITIES:
            rules = replace(base, capabilities=capabilities)
            for facts in FACTS:
                if facts.state in states and facts.state in of:
                    yield from ((facts, seen, rules, now) for now in boundaries(rules, facts) for seen in STATUSES)


def is_well_formed(step: Step, facts: Facts, now: datetime) -> bool:
    if not isinstance(step, LEGAL[facts.state]):
        return False
    match step:
        case Wait():
            return now < step.look_again <= step.latest + SECOND and step.latest >= now and step.what in ENDINGS
        case AskPerson():
            names = step.command.removeprefix("python -m nightmill ") in COMMANDS
            return bool(step.cause and step.remedy) and names and (step.look_again is None or step.look_again > now)
        case GiveUp():
            return step.ask is None or is_well_formed(step.ask, facts, now)
        case _:
            return True


def test_every_combination_has_one_well_formed_step_and_no_wait_outlives_its_latest_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    began, walked = time.process_time(), 0
    steps: Counter[type[Step]] = Counter()
    reasons: set[WaitsFor | GivenUp] = set()
    for facts, seen, rules, now in combinations():
        step = next_step(facts, seen, rules, now)
        assert is_well_formed(step, facts, now), (facts, seen, rules, now, step)
        if isinstance(step, Wait):
            reasons.add(step.what)
            later = next_step(facts, seen, rules, step.latest + SECOND)
            assert not (isinstance(later, Wait) and later.what is step.what), (facts, seen, rules, now, step, later)
        elif isinstance(step, GiveUp):
            reasons.add(step.why)
        steps[type(step)] += 1
        walked += 1
    seconds = time.process_time() - began
    with capsys.disabled():
        told = ", ".join(f"{number:,} {kind.__name__}" for kind, number in steps.most_common())
        sys.stdout.write(f"\nnext_step: {walked:,} combinations walked in {seconds:.1f} s of CPU: {told}\n")
    assert set(steps) == {StageInput, Create, LookUp, Poll, Collect, GiveUp, AskPerson, Wait, Done}
    assert reasons == {*WaitsFor, *GivenUp}
    assert walked > 500_000
    assert seconds < 5


def test_a_create_call_goes_out_only_for_an_open_batch_of_the_same_account() -> None:
    for facts, seen, rules, now in combinations({ProviderBatchState.INTENT, ProviderBatchState.CREATING}):
        step = next_step(facts, seen, rules, now)
        if isinstance(step, Create):
            assert (facts.account, rules.winding_down) == (rules.account, False)
            assert not isinstance(rules.sending, Blocked | Broken)
            assert step.again == (facts.state is ProviderBatchState.CREATING)
            assert not step.again or rules.capabilities.create_is_idempotent


def test_what_may_be_paid_for_is_given_up_only_where_it_is_absent_refused_or_its_run_was_cancelled() -> None:
    allowed = {
        GivenUp.ABSENT: Absent,
        GivenUp.NO_ROOM: NoRoom,
        GivenUp.TOO_LARGE: TooLarge,
        GivenUp.CREATE_REFUSED: Refused,
        GivenUp.NOT_TAKEN: Unreachable,
    }
    for facts, seen, rules, now in combinations({ProviderBatchState.CREATING}):
        step = next_step(facts, seen, rules, now)
        if isinstance(step, GiveUp) and step.why is not GivenUp.NEVER_WOUND_DOWN:
            assert isinstance(seen, allowed[step.why])
            if step.why is GivenUp.ABSENT:
                assert now >= START + rules.absent_after
                assert step.discard_input == (rules.capabilities.stages_input and facts.input_ref is not None)


def test_the_table_reads_no_clock_file_or_environment() -> None:
    folder = Path(__file__).parents[2] / "include" / "nightmill" / "domain"
    for name in ("next_step", "step_facts", "step_questions", "steps"):
        text = (folder / f"{name}.py").read_text("utf-8")
        assert not re.search(r"\.now\(|\bopen\(|^(import|from) (os|time|pathlib|psycopg|random)\b", text, re.MULTILINE)

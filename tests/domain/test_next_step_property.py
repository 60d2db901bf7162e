"""Over providers that may be slow, lose replies and show old news: few steps, nothing paid twice, always an end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from support.step_examples import GUESSES, PROVES, REPEATS, RULES, START
from support.truthful_provider import Plan, Reply, Shard, can_be_stopped

from nightmill.domain.capabilities import Capabilities, Input, Lookup
from nightmill.domain.step_facts import Rules
from nightmill.domain.steps import AskPerson, Done, GivenUp, GiveUp

UNKNOWN_STATUSES = 3
CAPABILITIES = st.sampled_from(
    [
        PROVES,
        GUESSES,
        REPEATS,
        replace(PROVES, lookup=Lookup.NONE),
        replace(PROVES, input=Input.INLINE, absence_grace=timedelta(minutes=10)),
        replace(GUESSES, create_is_idempotent=True),
    ]
)


def spans(hours: float) -> st.SearchStrategy[timedelta]:
    return st.floats(0, hours).map(lambda amount: timedelta(hours=amount))


@st.composite
def plans(draw: st.DrawFn, rules: Rules) -> Plan:
    """What one create meets. What is on its way for longer than the grace can only be stopped by deleting its input."""
    grace_h = rules.absent_after.total_seconds() / 3600
    runs_after = draw(spans(2))
    missing = draw(st.sampled_from([0, 0, 0, 1, 3]))
    return Plan(
        reply=draw(st.sampled_from([Reply.TAKEN, Reply.TAKEN, Reply.TAKEN, *Reply])),
        on_its_way=draw(spans(3 * grace_h if can_be_stopped(rules) else grace_h / 2)),
        listed_after=draw(spans(grace_h / 2)),
        runs_after=runs_after,
        ends_after=runs_after + draw(spans(20)),
        refused=draw(st.sampled_from([False] * 9 + [True])),
        unknown=draw(st.booleans()),
        unreachable=draw(st.booleans()),
        missing=missing,
        late_lines=draw(st.booleans()),
        rival=draw(st.booleans()),
    )


def tamed(plan: Plan, before: list[Plan]) -> Plan:
    """What a file has met once it does not meet again; no more statuses are unknown than three."""
    unknown = plan.unknown and sum(one.unknown for one in before) < UNKNOWN_STATUSES
    plan = replace(plan, unknown=unknown)
    if any(one.reply is not Reply.TAKEN or one.refused for one in before):
        plan = replace(plan, reply=Reply.TAKEN, refused=False)
    if any(one.unreachable for one in before):
        plan = replace(plan, unreachable=False)
    return replace(plan, missing=0) if sum(one.missing > 0 for one in before) > 1 else plan


@settings(max_examples=100, deadline=None)
@given(st.data(), CAPABILITIES, st.integers(1, 3), st.integers(1, 4))
def test_truthful_providers_take_few_steps_are_never_paid_twice_and_always_come_to_an_end(
    data: st.DataObject, capabilities: Capabilities, files: int, max_attempts: int
) -> None:
    rules = replace(RULES, capabilities=capabilities)
    met: list[list[Plan]] = []

    def plan(number: int) -> Plan:
        drawn = data.draw(plans(rules))
        everything = [one for of_file in met for one in of_file]
        unknown = drawn.unknown and sum(one.unknown for one in everything) < UNKNOWN_STATUSES
        met[-1].append(tamed(replace(drawn, unknown=unknown), met[-1]))
        return met[-1][-1]

    shard = Shard(rules, START, plan, max_attempts)
    for number in range(files):
        met.append([])
        shard.send(frozenset(range(10 * number, 10 * number + 10)))
    assert shard.provider.paid_twice == []
    assert all(isinstance(file.end, Done | GiveUp | AskPerson) for file in shard.files)
    steps = sum(len(file.told) for file in shard.files)
    assert steps <= 10 + 6 * files * (max_attempts + 1), [(file.plan, file.told) for file in shard.files]


@settings(max_examples=100, deadline=None)
@given(st.data(), CAPABILITIES)
def test_a_lost_create_is_sent_again_only_when_it_was_proved_absent_and_otherwise_found_or_asked(
    data: st.DataObject, capabilities: Capabilities
) -> None:
    rules = replace(RULES, capabilities=capabilities)
    lost = data.draw(plans(rules).filter(lambda plan: plan.reply is not Reply.TAKEN))
    shard = Shard(rules, START, lambda number: lost if number == 0 else Plan(), 1)
    first, *later = shard.send(frozenset(range(10)))
    was_taken = shard.provider.of(first.facts.token) is not None
    assert shard.provider.paid_twice == []
    if isinstance(first.end, GiveUp) and first.end.why is GivenUp.ABSENT:
        assert not was_taken
        assert later
    else:
        assert isinstance(first.end, AskPerson) or was_taken

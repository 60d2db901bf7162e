"""The circuit breaker by share: what the first requests that settle say of all of them."""

from __future__ import annotations

import pytest

from nightmill.jobs.rules.breaker import Count, Verdict, judge, most_at_first
from nightmill.jobs.settings.retry_settings import Breaker

RULES = Breaker()
BAD, ODD, SERVER = ("input", "unsupported_parameter"), ("output", "schema"), ("transient", "server_error")


@pytest.mark.parametrize(
    ("count", "to_send", "verdict"),
    [
        (Count(0, {BAD: 49}), 20_000, Verdict.WATCHING),
        (Count(0, {BAD: 50}), 20_000, Verdict.OPEN),
        (Count(10, {BAD: 40}), 20_000, Verdict.OPEN),
        (Count(11, {BAD: 39}), 20_000, Verdict.PASSED),
        (Count(0, {BAD: 25, ODD: 25}), 20_000, Verdict.OPEN),  # none accepted
        (Count(1, {BAD: 19}), 20, Verdict.OPEN),  # 19 of 20
        (Count(1, {BAD: 18}), 20, Verdict.WATCHING),
        (Count(0, {BAD: 5}), 5, Verdict.PASSED),  # too few: each may be wrong by itself
        (Count(0, {SERVER: 50}), 20_000, Verdict.PROBING),  # it may pass by itself
        (Count(0, {("transient", "empty_answer"): 50}), 20_000, Verdict.OPEN),  # executed, so paid
        (Count(0, {SERVER: 45, BAD: 5}), 20_000, Verdict.PROBING),
    ],
)
def test_of_the_first_50_settled_80_percent_with_one_code_or_none_accepted_open_it(
    count: Count, to_send: int, verdict: Verdict
) -> None:
    assert judge(count, RULES, to_send, probing=False) is verdict


def test_a_probe_that_fails_like_those_before_opens_it_and_one_that_does_not_lets_all_pass() -> None:
    assert judge(Count(0, {SERVER: 9}), RULES, 20_000, probing=True) is Verdict.PROBING
    assert judge(Count(0, {SERVER: 10}), RULES, 20_000, probing=True) is Verdict.OPEN
    assert judge(Count(9, {SERVER: 1}), RULES, 20_000, probing=True) is Verdict.PASSED


def test_answers_that_were_cut_off_and_get_more_room_are_tried_once_more_before_it_opens() -> None:
    cut = ("output", "truncated")
    assert judge(Count(0, {cut: 50}), RULES, 20_000, probing=False, mending={cut}) is Verdict.PROBING
    assert judge(Count(0, {cut: 50}), RULES, 20_000, probing=False) is Verdict.OPEN  # no more room
    assert judge(Count(0, {cut: 10}), RULES, 20_000, probing=True, mending={cut}) is Verdict.OPEN


def test_null_turns_it_off() -> None:
    off = Breaker(requests=None)
    assert judge(Count(0, {BAD: 1_000}), off, 20_000, probing=False) is Verdict.PASSED


def test_a_contract_without_an_accepted_answer_sends_100_first_where_there_are_more_than_2000() -> None:
    assert most_at_first(RULES, Verdict.WATCHING, 2_001, 0, proven=False) == 100
    assert most_at_first(RULES, Verdict.WATCHING, 2_000, 0, proven=False) is None
    assert most_at_first(RULES, Verdict.WATCHING, 20_000, 0, proven=True) is None
    assert most_at_first(RULES, Verdict.PROBING, 20_000, 0, proven=False) == 50
    assert most_at_first(RULES, Verdict.PROBING, 20_000, 2, proven=False) == 48  # of a shard that had only two left
    assert most_at_first(Breaker(pilot_above_items=None), Verdict.WATCHING, 20_000, 0, proven=False) is None

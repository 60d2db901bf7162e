"""What a refused file's complaints mean: by record id, by line counted from 1, by line counted from 0."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmill.domain.failures import Failure, FailureClass
from nightmill.domain.snapshots import Complaint
from nightmill.domain.states import ProviderBatchState
from nightmill.stages.run_shard.named_lines import named_by
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.ranges import multirange

BAD = Failure(FailureClass.INPUT, "bad", "")


def file_of(ordinals: set[int]) -> ProviderBatch:
    now = datetime.now(UTC)
    return ProviderBatch(
        1, 1, 1, ProviderBatchState.SUBMITTED, "nm-7", "a", multirange(sorted(ordinals)), len(ordinals), 0, "f", "b",
        "failed", now, now, now, None, None,
    )  # fmt: skip


def problem(line: int | None, message: str = "bad", record_id: str | None = None) -> tuple[Complaint, Failure]:
    return Complaint("bad", message, line, record_id=record_id), BAD


@pytest.mark.parametrize(
    "complaint",
    [
        problem(1, "request nm-7-0-30: bad"),
        problem(1, 'custom_id "nm-7-0-30" is bad'),
        problem(None, "bad", "nm-7-0-30"),
        problem(9, "bad", "nm-7-0-30"),
    ],
)
def test_the_record_id_in_a_message_is_believed_and_the_line_beside_it_is_not(
    complaint: tuple[Complaint, Failure],
) -> None:
    named = named_by([complaint], file_of({10, 20, 30, 40}))
    assert (dict(named.bad), list(named.suspects)) == ({30: BAD}, [])


@pytest.mark.parametrize("message", ["nm-7-0-99 is bad", "xnm-7-0-30", "nm-7-0-30x", "nm-70-0-30", "30"])
def test_what_is_no_record_id_of_the_file_names_nobody(message: str) -> None:
    assert named_by([problem(None, message)], file_of({10, 20, 30, 40})).bad == {}


@pytest.mark.parametrize(
    ("lines", "suspects"),
    [
        ([2], [[20], [30]]),
        ([0], [[10]]),
        ([4], [[40]]),
        ([1, 3], [[10, 30], [20, 40]]),
        ([1, 2], [[10, 20], [30]]),
        ([0, 4], []),
        ([5, -1], []),
    ],
)
def test_what_a_line_number_may_mean_is_tested_apart_and_nothing_is_given_up(
    lines: list[int], suspects: list[list[int]]
) -> None:
    named = named_by(map(problem, lines), file_of({10, 20, 30, 40}))
    assert named.bad == {}
    assert [list(group) for group in named.suspects] == suspects


@pytest.mark.parametrize("first", [0, 1])
def test_where_all_lines_are_named_all_are_meant_from_whatever_number_they_are_counted(first: int) -> None:
    named = named_by([problem(line + first) for line in range(3)], file_of({10, 20, 30}))
    assert (set(named.bad), named.suspects) == ({10, 20, 30}, ())


@given(st.sets(st.integers(0, 500), min_size=2, max_size=60), st.data())
def test_the_bad_items_are_always_among_those_that_are_tested_apart(items: set[int], data: st.DataObject) -> None:
    carried = sorted(items)
    first = data.draw(st.sampled_from([0, 1]))
    bad = data.draw(st.sets(st.sampled_from(carried), min_size=1, max_size=len(carried) - 1))
    named = named_by([problem(carried.index(one) + first) for one in bad], file_of(items))
    apart = {ordinal for group in named.suspects for ordinal in group}
    assert not named.bad
    assert bad <= apart
    assert len(apart) <= 2 * len(bad)

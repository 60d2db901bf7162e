"""Which parts are merged, and which ones a rollback still needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from nightmill.domain.merging import LEAST_ROWS, MERGE_ABOVE, groups, needed, where_now
from nightmill.domain.parts import Part

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)


def night(number: int, part_id: int | None = None, *, batch_id: int | None = None, rows: int = 2_500) -> Part:
    batch = batch_id or number + 1
    start = FIRST + number * DAY
    return Part(part_id or batch, batch, start, start + DAY, start + DAY, {"accepted": rows}, 0)


def test_few_parts_stay_as_they_are() -> None:
    listed = [night(one) for one in range(MERGE_ABOVE)]
    assert groups(listed, [listed]) == []


def test_only_what_every_kept_publication_shows_alike_is_merged() -> None:
    listed = [night(one) for one in range(20)]
    before = [*listed[:9], night(9, batch_id=99), *listed[10:19]]
    assert groups(listed, [listed, before]) == [list(range(1, 10)), list(range(11, 20))]


def test_parts_grow_to_a_bound_and_then_stay() -> None:
    listed = [night(one, rows=LEAST_ROWS // 3) for one in range(MERGE_ABOVE + 1)]
    assert groups(listed, [listed]) == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]
    whole = [night(one, rows=LEAST_ROWS) for one in range(MERGE_ABOVE + 1)]
    assert groups(whole, [whole]) == []


def test_a_publication_from_before_a_merge_and_a_mended_night_can_be_shown_again() -> None:
    before = [night(one) for one in range(4)]
    mended = [night(0, -2), night(1, 9, batch_id=9), night(2, -2), night(3, -2)]
    contents = {-1: frozenset({1, 2, 3, 4}), -2: frozenset({1, 3, 4}), 9: frozenset({9})}
    assert where_now(before, contents) == [night(one, -1) for one in range(4)]
    assert where_now(mended, contents) == mended
    assert needed(mended, [mended, before], contents) == {-1, -2, 9}
    assert where_now(before, {-2: frozenset({1, 3, 4})}) is None


@given(st.lists(st.lists(st.integers(0, 30), unique=True, min_size=1), max_size=6), st.data())
def test_where_it_lies_now_holds_each_batch_once_and_nothing_else(merged: list[list[int]], data: st.DataObject) -> None:
    contents = {-number - 1: frozenset(one + 1 for one in batches) for number, batches in enumerate(merged)}
    contents |= {one + 1: frozenset({one + 1}) for one in data.draw(st.sets(st.integers(0, 30)))}
    listed = [night(one) for one in data.draw(st.sets(st.integers(0, 30)))]
    found = where_now(listed, contents)
    wanted = {one.batch_id for one in listed}
    if found is None:
        return
    shown = [batch for part_id in {one.part_id for one in found} for batch in contents[part_id]]
    assert sorted(shown) == sorted(wanted)

"""Rolling back one interval of a view that shows every interval, or the view as a whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from support.ledger import Ledger, apply, definition

from nightmill.domain import merging as rules
from nightmill.domain.errors import Blocked, ConfigError, Terminal
from nightmill.domain.maintenance import refuse_failed
from nightmill.storage import holds, merging, partitions, publications, rollbacks, view_history
from nightmill.storage.batches import Batch
from nightmill.storage.holds import Hold
from nightmill.storage.part_builds import OutOfDate
from nightmill.upkeep import merging as stage

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def nights(ledger: Ledger) -> Ledger:
    """A ledger whose view shows intervals."""
    ledger.job = definition(mode="by_interval")
    apply(ledger.admin_dsn, ledger.job)
    return ledger


def night(ledger: Ledger, number: int, days: int = 1, items: int = 5, *, show: bool = True, **params: bool) -> Batch:
    start = FIRST + number * DAY
    made = ledger.validating(items, interval_start=start, interval_end=start + days * DAY, params=params)
    if show:
        ledger.publish(made)
    return made


def interval(number: int, days: int = 1) -> tuple[datetime, datetime]:
    return FIRST + number * DAY, FIRST + (number + days) * DAY


def roll_back(ledger: Ledger, number: int | None = None, days: int = 1, to: int | None = None) -> Hold:
    with ledger.writer() as conn:
        plan = rollbacks.plan(conn, "notes", to, None if number is None else interval(number, days))
        built = rollbacks.build(conn, plan)
        return rollbacks.carry_out(conn, plan, "tester", reason=None, revoke=False, built=built)[1]


def shown(ledger: Ledger) -> list[int]:
    return [one for (one,) in ledger.sql("select distinct batch_id from results.notes order by 1")]


def numbers(*batches: Batch) -> list[int]:
    return sorted(one.batch_id for one in batches)


def test_an_interval_goes_back_to_its_earlier_part_and_the_others_stay(nights: Ledger) -> None:
    first, second, again, third = night(nights, 0), night(nights, 1), night(nights, 0), night(nights, 2)
    hold = roll_back(nights, 0)
    assert shown(nights) == numbers(first, second, third)
    assert (hold.interval, hold.taken_back) == (interval(0), [again.batch_id])
    with nights.writer() as conn, pytest.raises(ConfigError, match="does not show the interval that begins at"):
        rollbacks.plan(conn, "notes", None, interval(7))


def test_an_interval_without_an_earlier_part_is_shown_no_more_and_does_not_come_back(nights: Ledger) -> None:
    first, second, again = night(nights, 0), night(nights, 1), night(nights, 0)
    roll_back(nights, 0)
    roll_back(nights, 0)
    assert shown(nights) == numbers(second)
    assert first.batch_id != again.batch_id
    with nights.writer() as conn:
        holds.release(conn, holds.open_of(conn, "notes"), "tester")
    night(nights, 0)
    roll_back(nights, 0)
    assert shown(nights) == numbers(second)


def test_the_only_interval_goes_too(nights: Ledger) -> None:
    night(nights, 0)
    roll_back(nights, 0)
    assert shown(nights) == []
    other = night(nights, 1)
    assert shown(nights) == numbers(other)


def test_only_runs_of_a_held_interval_are_refused(nights: Ledger) -> None:
    night(nights, 0)
    bad = night(nights, 0)
    roll_back(nights, 0)
    other = night(nights, 1)
    again = night(nights, 0, show=False)
    with pytest.raises(Blocked, match=rf"The interval 2026-03-01T00:00:00\+00:00 .* is held: .* batch {bad.batch_id}"):
        nights.publish(again)
    week = night(nights, 0, days=7, show=False, replace_intervals=True)
    with pytest.raises(Blocked, match="is held"):
        nights.publish(week)
    with nights.writer() as conn:
        [hold] = holds.open_of(conn, "notes")
        assert hold.release == "python -m nightmill release notes --interval 2026-03-01T00:00:00+00:00"
        holds.release(conn, [hold], "tester")
    nights.publish(again)
    assert shown(nights) == numbers(other, again)


def test_a_whole_view_of_intervals_goes_back_one_publication_and_is_held_as_a_whole(nights: Ledger) -> None:
    first, second, third = (night(nights, number) for number in range(3))
    hold = roll_back(nights)
    assert shown(nights) == numbers(first, second)
    assert (hold.interval, hold.taken_back) == (None, [third.batch_id])
    with pytest.raises(Blocked, match=r"The view results\.notes is held"):
        night(nights, 7)
    roll_back(nights)
    assert shown(nights) == numbers(first)
    assert second.batch_id != third.batch_id


def test_a_longer_interval_gives_way_to_those_that_it_replaced(nights: Ledger) -> None:
    first, second, later = night(nights, 0), night(nights, 1), night(nights, 9)
    night(nights, 0, days=7, replace_intervals=True)
    roll_back(nights, 0, days=7)
    assert shown(nights) == numbers(first, second, later)


def test_rows_say_since_when_they_are_shown_again(nights: Ledger) -> None:
    night(nights, 0)
    other = night(nights, 1)
    night(nights, 0)
    since = "select batch_id, min(published_at) from results.notes group by 1"
    before = dict(nights.sql(since))
    roll_back(nights, 0)
    after = dict(nights.sql(since))
    assert after.pop(other.batch_id) == before.pop(other.batch_id)
    assert min(after.values()) > max(before.values())


@pytest.fixture
def merged(nights: Ledger, monkeypatch: pytest.MonkeyPatch) -> list[Batch]:
    """Nine nights: what no kept publication shows otherwise, the first seven, lies in one part."""
    monkeypatch.setattr(rules, "MERGE_ABOVE", 4)
    made = [night(nights, number, items=5 + number) for number in range(9)]
    sweep(nights)
    assert nights.sql(MERGED) == [(-1,)]
    return made


MERGED = "select distinct part_id from nightmill.rows_notes where part_id < 0"


def sweep(ledger: Ledger) -> None:
    refuse_failed(stage.run({"notes": ledger.job}, ledger.admin_dsn))


def mend(ledger: Ledger, number: int) -> Batch:
    """Publish a night of a merged part again, as the stage does."""
    again = night(ledger, number, items=50, show=False)
    with ledger.writer() as conn:
        built = merging.build_beside(conn, again, publications.current(conn, "notes"))
        publications.publish(conn, again, "tester", lambda: None, built)
    return again


def kept(ledger: Ledger) -> list[int]:
    with ledger.writer() as conn:
        return [one.publish_seq for one in view_history.history(conn, "notes", 50) if one.kept]


def test_a_publication_whose_nights_were_merged_since_is_shown_again(nights: Ledger, merged: list[Batch]) -> None:
    assert kept(nights) == [10, 9, 8, 7]  # 7, the oldest, shows just what was merged
    roll_back(nights, to=8)
    assert shown(nights) == numbers(*merged[:8])
    roll_back(nights, to=9)
    assert shown(nights) == numbers(*merged)


def test_what_is_kept_is_named_where_a_publication_is_not(nights: Ledger, merged: list[Batch]) -> None:
    with pytest.raises(Terminal, match=r"rows of publication 3 .*not all kept") as refused:
        roll_back(nights, to=3)
    assert "kept with --to: 9, 8, 7." in refused.value.remedy
    assert shown(nights) == numbers(*merged)


def test_a_publication_of_which_only_a_part_is_listed_any_more_is_not_kept(nights: Ledger) -> None:
    for number in range(3):
        night(nights, number)
    nights.sql("delete from nightmill.publication_part where publish_seq = 2 and part_id = 1")
    assert kept(nights) == [3, 1]
    with pytest.raises(Terminal, match="rows of publication 2"):
        roll_back(nights, to=2)


def test_an_interval_is_taken_out_of_a_merged_part(nights: Ledger, merged: list[Batch]) -> None:
    hold = roll_back(nights, 2)
    left = [one for one in merged if one is not merged[2]]
    counts = nights.sql("select batch_id, count(*) from results.notes group by 1 order by 1")
    assert counts == [(one.batch_id, one.item_count) for one in left]
    assert (hold.interval, hold.taken_back) == (interval(2), [merged[2].batch_id])
    roll_back(nights, to=9)  # and it can be undone
    assert shown(nights) == numbers(*merged)
    assert nights.sql("select count(*) from nightmill.part_build") == [(0,)]


def test_a_mended_night_of_a_merged_part_goes_back_to_what_it_was(nights: Ledger, merged: list[Batch]) -> None:
    mend(nights, 2)
    sweep(nights)
    roll_back(nights, 2)
    assert shown(nights) == numbers(*merged)


def test_an_interval_whose_earlier_rows_are_gone_is_refused_and_stays(nights: Ledger, merged: list[Batch]) -> None:
    again = mend(nights, 2)
    with nights.admin(autocommit=True) as conn:
        assert partitions.retire(conn, "rows_notes", -1, 5)
    with pytest.raises(Terminal, match=r"rows of publication \d+ of results\.notes are not all kept"):
        roll_back(nights, 2)
    assert shown(nights) == numbers(*merged[:2], *merged[3:], again)


@pytest.mark.parametrize("late", ["another night", "a merge", "the night itself"])
def test_a_part_is_written_anew_again_where_something_was_published_meanwhile(
    nights: Ledger, merged: list[Batch], late: str
) -> None:
    with nights.writer() as conn:
        plan = rollbacks.plan(conn, "notes", None, interval(2))
        built = rollbacks.build(conn, plan)
        if late == "another night":
            night(nights, 20)
        elif late == "a merge":
            night(nights, 20), night(nights, 21)
            sweep(nights)
        else:
            mend(nights, 2)
        with pytest.raises(OutOfDate):
            rollbacks.carry_out(conn, plan, "tester", reason=None, revoke=False, built=built)
        conn.rollback()
        if late == "the night itself":
            with pytest.raises(Terminal, match="has changed meanwhile"):
                rollbacks.again(conn, plan)
            return
        plan = rollbacks.again(conn, plan)
        rollbacks.carry_out(conn, plan, "tester", reason=None, revoke=False, built=rollbacks.build(conn, plan))
    assert merged[2].batch_id not in shown(nights)
    assert set(numbers(*merged)) - {merged[2].batch_id} <= set(shown(nights))
    assert nights.sql("select count(*) from nightmill.part_build") == [(0,)]

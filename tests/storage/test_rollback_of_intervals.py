"""Rolling back one interval of a view that shows every interval, or the view as a whole."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from psycopg import IsolationLevel
from support.ledger import Ledger, apply, definition

from nightmill.domain.errors import Blocked, ConfigError, Terminal
from nightmill.storage import holds, partitions, publications, rollbacks
from nightmill.storage.batches import Batch
from nightmill.storage.holds import Hold
from nightmill.storage.ledger import Connection

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
        return rollbacks.carry_out(conn, plan, "tester", reason=None, revoke=False)[1]


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


def _merge(ledger: Ledger, merged: int, batches: list[Batch]) -> None:
    """What maintenance does with old intervals: their rows in one part, their own parts gone."""
    with ledger.admin() as conn:
        conn.execute("set session_replication_role = replica")
        conn.execute("select nightmill.create_partition('rows_notes', %s)", (merged,))
        conn.execute("select nightmill.attach_partition('rows_notes', %s)", (merged,))
        conn.execute("create temporary table copied as select * from nightmill.rows_notes where false")
        conn.execute(
            "insert into copied select * from nightmill.rows_notes where part_id = any(%s)", (numbers(*batches),)
        )
        conn.execute("update copied set part_id = %s", (merged,))
        conn.execute("insert into nightmill.rows_notes select * from copied")
    with ledger.admin() as conn:
        now = publications.current(conn, "notes", lock=True)
        assert now is not None
        listed = publications.parts(conn, now.publish_seq)
        moved = [replace(one, part_id=merged) if one.batch_id in numbers(*batches) else one for one in listed]
        publications.flip(conn, "notes", "merge", moved, "maintenance")
    with ledger.admin(autocommit=True) as conn:
        for one in batches:
            assert partitions.retire(conn, "rows_notes", one.batch_id, 5)


def test_a_view_with_merged_parts_rolls_back_whole_and_by_an_interval_that_was_not_merged(nights: Ledger) -> None:
    old = [night(nights, number) for number in range(3)]
    first, last = night(nights, 3), night(nights, 4)
    _merge(nights, -1, old)
    assert shown(nights) == numbers(*old, first, last)
    roll_back(nights)  # to a publication that lists the parts of before
    assert shown(nights) == numbers(*old, first)
    roll_back(nights, 3)
    assert shown(nights) == numbers(*old)


def test_an_interval_that_was_merged_with_others_cannot_be_taken_out(nights: Ledger) -> None:
    old = [night(nights, number) for number in range(3)]
    _merge(nights, -1, old)
    with pytest.raises(Terminal, match="are not all kept: maintenance dropped some, or merged them"):
        roll_back(nights, 1)
    assert shown(nights) == numbers(*old)


def test_readers_see_one_part_of_each_interval_while_one_is_rolled_back(nights: Ledger) -> None:
    """Half of them in repeatable-read transactions of several looks."""
    for number in range(5):
        night(nights, number, items=50)
    night(nights, 2, items=70)
    look = "select count(*), count(distinct (data_interval_start, batch_id)), count(distinct data_interval_start)"
    faults: list[BaseException] = []
    stop = threading.Event()

    def seen(conn: Connection) -> int:
        row = conn.execute(f"{look} from results.notes").fetchone()
        assert row is not None
        assert row in ((250, 5, 5), (270, 5, 5)), row
        return int(row[0])

    def read(number: int) -> None:
        try:
            with nights.reader(autocommit=number % 2 == 0) as conn:
                conn.isolation_level = IsolationLevel.REPEATABLE_READ if number % 2 else None
                while not stop.is_set():
                    rows = seen(conn)
                    if number % 2:
                        assert {seen(conn) for _ in range(3)} == {rows}
                        conn.commit()
                    time.sleep(0.005)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=read, args=(number,), daemon=True) for number in range(20)]
    for one in threads:
        one.start()
    for to in (None, 6, 5, 6, 5):
        time.sleep(0.2)
        roll_back(nights, 2) if to is None else roll_back(nights, to=to)
    stop.set()
    for one in threads:
        one.join(20)
    assert not faults

"""A view of intervals: what it shows after nights, backfills, and runs whose interval is another one."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.figures import note
from support.ledger import Ledger, apply, definition

from nightmill.domain.errors import Blocked, ConfigError, Terminal
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.storage import batches, publications, retention
from nightmill.storage.batches import Batch, Submission
from nightmill.storage.publications import Part

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
SHOWN = "select batch_id, count(*) from results.notes group by batch_id order by batch_id"


@pytest.fixture
def nights(ledger: Ledger) -> Ledger:
    """A ledger whose view shows intervals."""
    ledger.job = definition(mode="by_interval")
    assert apply(ledger.admin_dsn, ledger.job) == "redefined"
    return ledger


def night(ledger: Ledger, number: int, items: int = 5, days: float = 1, **options: Any) -> Batch:
    start = FIRST + number * DAY
    return ledger.validating(items, interval_start=start, interval_end=start + days * DAY, **options)


def test_an_older_night_is_added_and_a_night_that_ran_again_takes_the_place_of_its_first_run(nights: Ledger) -> None:
    second, first, again = night(nights, 1, 6), night(nights, 0, 5), night(nights, 1, 7)
    nights.publish(second)
    nights.publish(first)
    assert nights.sql(SHOWN) == [(second.batch_id, 6), (first.batch_id, 5)]
    nights.publish(again)
    assert nights.sql(SHOWN) == [(first.batch_id, 5), (again.batch_id, 7)]
    with nights.writer() as conn:
        shown = publications.current(conn, "notes")
        assert shown is not None
        assert (shown.mode, shown.part_id, shown.batch_id) == (PublishMode.BY_INTERVAL, None, again.batch_id)
        listed = publications.parts(conn, shown.publish_seq)
    assert [(one.part_id, one.interval_start) for one in listed] == [
        (first.batch_id, FIRST),
        (again.batch_id, FIRST + DAY),
    ]
    assert nights.sql("select counts from nightmill.publication order by publish_seq desc limit 1") == [
        ({"accepted": 12},)
    ]


def test_rows_tell_their_interval_and_since_when_their_night_is_shown(nights: Ledger) -> None:
    first, second = night(nights, 0), night(nights, 1)
    nights.publish(first)
    nights.publish(second)
    rows = nights.sql("select distinct batch_id, data_interval_start, published_at from results.notes order by 1")
    times = nights.sql("select published_at from nightmill.publication order by publish_seq")
    assert rows == [(first.batch_id, FIRST, *times[0]), (second.batch_id, FIRST + DAY, *times[1])]


def test_a_run_that_was_frozen_before_the_one_that_is_shown_is_refused(nights: Ledger) -> None:
    older, newer = night(nights, 0), night(nights, 0)
    nights.publish(newer)
    with pytest.raises(Terminal, match="shows a newer run of this interval"):
        nights.publish(older)
    assert nights.sql(SHOWN) == [(newer.batch_id, 5)]


def test_an_interval_that_overlaps_is_refused_unless_it_covers_whole_ones_and_the_run_asks(nights: Ledger) -> None:
    first, second, apart = night(nights, 0), night(nights, 1), night(nights, 9)
    for one in (first, second, apart):
        nights.publish(one)
    asks = {"params": {"replace_intervals": True}}
    with pytest.raises(Terminal, match=r"overlaps what results\.notes shows.*one that covers each of them wholly"):
        nights.publish(night(nights, 0, days=1.5, **asks))
    with pytest.raises(Terminal, match=r"trigger a run with replace_intervals = true"):
        nights.publish(night(nights, 0, days=7))
    week = night(nights, 0, 8, days=7, **asks)
    nights.publish(week)
    assert nights.sql(SHOWN) == [(apart.batch_id, 5), (week.batch_id, 8)]


def test_a_night_of_a_merged_part_waits_until_that_period_is_written_anew(nights: Ledger) -> None:
    first, second = night(nights, 0), night(nights, 1)
    again = night(nights, 0)
    nights.publish(first)
    nights.publish(second)
    with nights.admin() as conn:
        conn.execute("select nightmill.create_partition('rows_notes', -1)")
        names = "batch_id, source_id, result_id, title"
        conn.execute(f'insert into nightmill."rows_-1" (part_id, {names}) select -1, {names} from results.notes')
        conn.execute("select nightmill.attach_partition('rows_notes', -1)")
        shown = publications.current(conn, "notes", lock=True)
        assert shown is not None
        merged = [
            Part(-1, one.batch_id, *one.interval, one.frozen_at, one.counts, one.gaps, one.shown_since)
            for one in publications.parts(conn, shown.publish_seq)
        ]
        publications.flip(conn, "notes", "merge", merged, "maintenance")
    assert nights.sql("select distinct part_id from nightmill.rows_notes where part_id < 0") == [(-1,)]
    assert nights.sql(SHOWN) == [(first.batch_id, 5), (second.batch_id, 5)]
    assert nights.sql("select count(published_at) from results.notes") == [(10,)]
    with pytest.raises(Blocked, match="was merged with others"):
        nights.publish(again)


def test_one_interval_has_one_batch_at_work(nights: Ledger) -> None:
    one = nights.created(interval_start=FIRST, interval_end=FIRST + DAY)
    asked = {"dag_id": "nightmill_test", "run_id": "other", "interval_start": FIRST, "interval_end": FIRST + DAY}
    with nights.writer() as conn:
        with pytest.raises(Terminal, match=f"Batch {one.batch_id} of run .* works on the same data interval"):
            batches.refuse_second_of_interval(conn, _submission(nights, **asked))
        batches.refuse_second_of_interval(conn, _submission(nights, **asked | {"interval_end": FIRST + 2 * DAY}))
        batches.cancel(conn, one.batch_id, "test")
        batches.refuse_second_of_interval(conn, _submission(nights, **asked))


def _submission(ledger: Ledger, **of: Any) -> Submission:
    return Submission(
        ledger.job.name, "notes", of["dag_id"], of["run_id"], 1, False, {}, None, None, of["interval_start"],
        of["interval_end"],
    )  # fmt: skip


def test_what_a_view_shows_becomes_its_first_interval_when_the_mode_changes(ledger: Ledger) -> None:
    first = night(ledger, 0)
    ledger.publish(first)
    ledger.job = definition(mode="by_interval")
    assert apply(ledger.admin_dsn, ledger.job) == "redefined"
    assert ledger.sql(SHOWN) == [(first.batch_id, 5)]
    second = night(ledger, 1)
    ledger.publish(second)
    assert ledger.sql(SHOWN) == [(first.batch_id, 5), (second.batch_id, 5)]
    with pytest.raises(ConfigError, match=r"publish\.mode is replace, and results\.notes shows .* by_interval"):
        apply(ledger.admin_dsn, definition())


def test_a_batch_without_an_interval_becomes_no_interval(ledger: Ledger) -> None:
    ledger.publish(ledger.validating())
    with pytest.raises(ConfigError, match="by a run that had no data interval"):
        apply(ledger.admin_dsn, definition(mode="by_interval"))


def test_retention_keeps_every_interval_that_is_shown(nights: Ledger) -> None:
    made = [night(nights, number) for number in range(5)]
    for batch in [*made, again := night(nights, 0)]:
        nights.publish(batch)
    with nights.writer() as conn:
        shown = {one.batch_id: one.shown for one in retention.candidates(conn)}
    assert shown == {made[0].batch_id: False, again.batch_id: True} | {one.batch_id: True for one in made[1:]}


def test_publishing_beside_four_hundred_intervals_takes_milliseconds(nights: Ledger) -> None:
    first = night(nights, 0)
    nights.publish(first)
    with nights.admin() as conn:
        conn.execute("set session_replication_role = replica")  # as if so many nights had been published
        conn.execute(
            "insert into nightmill.batch overriding system value select (jsonb_populate_record(batch, "
            "jsonb_build_object('batch_id', 1000000 + n, 'run_id', n::text))).* "
            "from nightmill.batch, generate_series(1, 399) as n"
        )
        conn.execute(
            "insert into nightmill.publication_part select publish_seq, 1000000 + n, 1000000 + n, "
            "interval_start - n * '1 day'::interval, interval_end - n * '1 day'::interval, frozen_at, counts, gaps, "
            "shown_since from nightmill.publication_part, generate_series(1, 399) as n"
        )
        conn.execute(
            "do $$ begin for part in 1000001..1000399 loop execute format('create table nightmill.%I partition of "
            "nightmill.rows_notes for values in (%s)', nightmill.partition_name('rows_notes', part), part); "
            "end loop; end $$"
        )
    taken = []
    for number in range(1, 12):
        batch = night(nights, number, 1)
        began = time.perf_counter()
        nights.publish(batch)
        taken.append(time.perf_counter() - began)
    note(f"publishing beside 400 intervals: median {sorted(taken)[5] * 1000:.1f} ms, most {max(taken) * 1000:.1f} ms")
    assert sorted(taken)[5] < 1  # 40 ms where nothing else runs; the ledger's share is 4 ms

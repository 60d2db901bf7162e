"""Maintenance of a view of intervals: merging, retiring what nobody sees, and writing anew for a backfill."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import IsolationLevel
from support.ledger import Ledger, apply, definition

from nightmill.domain import merging as rules
from nightmill.domain.errors import IllegalTransition, Terminal
from nightmill.domain.maintenance import refuse_failed
from nightmill.domain.merging import where_now
from nightmill.jobs.contract import JobDefinition
from nightmill.storage import merging, publications
from nightmill.storage.batches import Batch
from nightmill.upkeep import merging as stage

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
SHOWN = "select batch_id, count(*), min(title), max(title) from results.notes group by 1 order by 1"
ATTACHED = "select count(*) from pg_inherits where inhparent = 'nightmill.rows_notes'::regclass"


@pytest.fixture
def nights(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger whose view shows intervals, with a low bound for merging."""
    monkeypatch.setattr(rules, "MERGE_ABOVE", 4)
    ledger.job = definition(mode="by_interval")
    assert apply(ledger.admin_dsn, ledger.job) == "redefined"
    return ledger


def night(ledger: Ledger, number: int, items: int = 5, **options: Any) -> Batch:
    start = FIRST + number * DAY
    return ledger.validating(items, interval_start=start, interval_end=start + DAY, **options)


def published(ledger: Ledger, count: int) -> list[Batch]:
    made = [night(ledger, one, 5 + one) for one in range(count)]
    for one in made:
        ledger.publish(one)
    return made


def sweep(ledger: Ledger, job: JobDefinition | None = None) -> list[str]:
    done = stage.run({"notes": job or ledger.job}, ledger.admin_dsn)
    refuse_failed(done)
    return [one.what for one in done]


def publish(ledger: Ledger, batch: Batch) -> None:
    """As the stage does: what was merged is written anew before."""
    with ledger.writer() as conn:
        built = merging.build_beside(conn, batch, publications.current(conn, "notes"))
        publications.publish(conn, batch, "tester", lambda: None, built)


def listed(ledger: Ledger) -> list[tuple[int, int]]:
    with ledger.writer() as conn:
        shown = publications.current(conn, "notes")
        assert shown is not None
        return [(one.part_id, one.batch_id) for one in publications.parts(conn, shown.publish_seq)]


def test_old_nights_are_merged_and_readers_see_the_same(nights: Ledger) -> None:
    made = published(nights, 9)
    before = nights.sql(SHOWN), nights.sql("select batch_id, published_at from results.notes order by 1, 2")
    assert sweep(nights) == [
        "results.notes: 7 parts merged into one",
        "results.notes: 7 parts taken away that no publication needs",
    ]
    ids = [one.batch_id for one in made]
    assert listed(nights) == [*((-1, one) for one in ids[:7]), *((one, one) for one in ids[7:])]
    assert before == (
        nights.sql(SHOWN), nights.sql("select batch_id, published_at from results.notes order by 1, 2")
    )  # fmt: skip
    assert nights.sql(ATTACHED) == [(3,)]
    assert nights.sql("select kind, batch_id, counts from nightmill.publication order by publish_seq desc limit 1") == [
        ("merge", None, {"accepted": sum(range(5, 14))})
    ]
    assert nights.sql("select batch_id from nightmill.published") == [(ids[-1],)]
    assert sweep(nights) == []


def test_a_backfill_into_a_merged_period_exchanges_its_night_only(nights: Ledger) -> None:
    made = published(nights, 9)
    sweep(nights)
    again = night(nights, 2, 50)
    publish(nights, again)
    counts = {one.batch_id: one.item_count for one in (*made, again) if one is not made[2]}
    assert {batch: rows for batch, rows, *_ in nights.sql(SHOWN)} == counts
    assert [part for part, _ in listed(nights)][:4] == [-2, -2, again.batch_id, -2]
    older = night(nights, 30, 5)
    publish(nights, older)
    assert len(nights.sql(SHOWN)) == 10


def test_a_reader_with_an_old_snapshot_who_looks_first_after_merging_sees_its_rows(nights: Ledger) -> None:
    published(nights, 9)
    before = nights.sql(SHOWN)
    with nights.reader() as old:
        old.isolation_level = IsolationLevel.REPEATABLE_READ
        old.execute("select 1")  # its snapshot is taken; it has not touched the view yet
        assert sweep(nights) == [
            "results.notes: 7 parts merged into one",
            "results.notes: 7 parts still seen by older readers; the next sweep goes on",
        ]
        assert nights.sql(ATTACHED) == [(10,)]
        assert old.execute(SHOWN).fetchall() == before
        old.commit()
        assert old.execute(SHOWN).fetchall() == before
    assert sweep(nights) == ["results.notes: 7 parts taken away that no publication needs"]
    assert nights.sql(ATTACHED) == [(3,)]


def test_what_a_rollback_may_want_is_kept_and_can_be_shown_again(nights: Ledger) -> None:
    made = published(nights, 9)
    sweep(nights)
    publish(nights, night(nights, 2, 50))
    sweep(nights)
    with nights.writer() as conn:
        targets = merging.kept(conn, "notes", 3)
        contents = {one.part_id: one.batch_ids for one in merging.attached(conn, "notes")}
        for seq, gone in zip(targets, ([], [made[2].batch_id], []), strict=True):
            found = where_now(publications.parts(conn, seq), contents)
            assert found is not None, f"publication {seq} {gone}"
        before_the_mend = where_now(publications.parts(conn, targets[1]), contents)
        assert before_the_mend is not None
        publications.current(conn, "notes", lock=True)
        publications.flip(conn, "notes", "rollback", before_the_mend, "tester")
    assert [row[:2] for row in nights.sql(SHOWN)] == [(one.batch_id, one.item_count) for one in made]


def test_rows_that_are_gone_cannot_be_listed(nights: Ledger) -> None:
    published(nights, 9)
    with nights.writer() as conn:
        shown = publications.current(conn, "notes")
        assert shown is not None
        before = publications.parts(conn, shown.publish_seq)
    sweep(nights)
    with nights.writer() as conn, pytest.raises(IllegalTransition, match=r"cannot show part .*: its rows are gone"):
        publications.flip(conn, "notes", "rollback", before, "tester")


def test_a_copy_that_lacks_a_row_is_not_shown(nights: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    published(nights, 9)
    before = listed(nights)
    monkeypatch.setattr(merging.part_builds, "chunks", lambda *_: [{"first": "(0,0)", "last": "(0,3)"}])
    with pytest.raises(Terminal, match=r"part of this sweep failed.*not a true copy: it has"):
        sweep(nights)
    assert listed(nights) == before
    monkeypatch.undo()
    monkeypatch.setattr(rules, "MERGE_ABOVE", 4)
    assert len(sweep(nights)) == 2
    assert nights.sql("select count(*) from nightmill.part_build") == [(0,)]


def test_a_merge_leaves_what_was_published_meanwhile(nights: Ledger) -> None:
    published(nights, 8)
    with nights.admin() as conn:
        shown = publications.current(conn, "notes")
        assert shown is not None
        built = merging.build_without(conn, shown, None, [])
        assert built is None
        late = night(nights, 20)
        nights.publish(late)
        with pytest.raises(merging.part_builds.OutOfDate):
            merging.merge(conn, shown, [part for part, _ in listed(nights)][:5], "tester")
    assert (late.batch_id, late.batch_id) in listed(nights)


def test_only_the_newest_intervals_are_kept(nights: Ledger) -> None:
    made = published(nights, 9)
    sweep(nights)
    keeps = definition(mode="by_interval, keep_intervals: 4")
    assert "results.notes: shows its newest 4 intervals only: 5 intervals gone" in sweep(nights, keeps)
    assert [row[0] for row in nights.sql(SHOWN)] == [one.batch_id for one in made[5:]]
    assert sweep(nights, keeps) == []


def test_lists_of_publications_that_nobody_can_go_back_to_are_trimmed(nights: Ledger) -> None:
    published(nights, 12)
    sweep(nights)
    assert nights.sql("select count(*) from nightmill.publication") == [(13,)]
    # the newest three publications, the merge, and the newest list of each part
    assert nights.sql("select count(distinct publish_seq) from nightmill.publication_part") == [(4,)]


def test_hidden_parts_of_other_modes_are_bounded_too(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "MOST_ATTACHED", 6)
    made = [ledger.validating(4) for _ in range(9)]
    for one in made:
        ledger.publish(one)
    assert sweep(ledger) == ["results.notes: 3 parts taken away that no publication needs"]
    assert ledger.sql(ATTACHED) == [(6,)]
    assert ledger.sql("select distinct batch_id from results.notes") == [(made[-1].batch_id,)]

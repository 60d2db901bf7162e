"""A view by key: the newest row of every source id, deletions included, whatever order the batches come in."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from support.ledger import OUTPUT, Ledger, apply, definition

from nightmill.domain.errors import StaleWriter, Terminal
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.storage import by_key, holds, part_builds, partitions, publications, rollbacks
from nightmill.storage.batches import Batch
from nightmill.storage.part_builds import Built, OutOfDate

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
SHOWN = "select source_id, batch_id from results.notes order by source_id"
TABLES = (
    "select count(*) from pg_class where relnamespace = 'nightmill'::regnamespace and relkind = 'r' "
    "and relname like 'rows\\_-%'"
)


@pytest.fixture
def keyed(ledger: Ledger) -> Ledger:
    """A ledger whose view shows the newest row of each id; `gone` marks those that are deleted."""
    ledger.job = definition(output=OUTPUT + "    gone: bool | None = None\n", mode="by_key, deleted: gone")
    apply(ledger.admin_dsn, ledger.job)
    return ledger


def build(ledger: Ledger, batch: Batch) -> Built:
    with ledger.writer() as conn:
        return by_key.build(conn, batch, ledger.job, publications.current(conn, batch.view_name))


def flip(ledger: Ledger, batch: Batch, built: Built) -> None:
    with ledger.writer() as conn:
        publications.publish(conn, batch, "tester", lambda: None, built)


def publish(ledger: Ledger, batch: Batch) -> None:
    flip(ledger, batch, build(ledger, batch))


def of_day(ledger: Ledger, day: int, items: int = 5, **options: str) -> Batch:
    return ledger.validating(items, interval_start=FIRST + day * DAY, interval_end=FIRST + (day + 1) * DAY, **options)


def mark_deleted(ledger: Ledger, batch: Batch, *ids: str) -> None:
    ledger.sql(
        "update nightmill.rows_notes set gone = true where part_id = %s and source_id = any (%s)",
        batch.batch_id, list(ids),
    )  # fmt: skip


def test_ids_that_a_batch_does_not_carry_stay_as_shown(keyed: Ledger) -> None:
    first, second = of_day(keyed, 0, 5), of_day(keyed, 1, 3)
    publish(keyed, first)
    publish(keyed, second)
    assert [batch for _, batch in keyed.sql(SHOWN)] == [second.batch_id] * 3 + [first.batch_id] * 2
    with keyed.writer() as conn:
        shown = publications.current(conn, "notes")
        assert shown is not None
        assert (shown.mode, shown.batch_id) == (PublishMode.BY_KEY, second.batch_id)
        assert [(one.part_id, one.batch_id) for one in publications.parts(conn, shown.publish_seq)] == [
            (shown.part_id, second.batch_id)
        ]


def test_an_old_backfill_adds_ids_and_overwrites_none(keyed: Ledger) -> None:
    newer, older = of_day(keyed, 5, 3), of_day(keyed, 1, 5)
    publish(keyed, newer)
    publish(keyed, older)
    assert [batch for _, batch in keyed.sql(SHOWN)] == [newer.batch_id] * 3 + [older.batch_id] * 2


def test_a_deleted_id_goes_and_no_older_batch_brings_it_back(keyed: Ledger) -> None:
    publish(keyed, of_day(keyed, 1, 5))
    deletes = of_day(keyed, 3, 1)
    mark_deleted(keyed, deletes, "doc-0")
    publish(keyed, deletes)
    shown = [(f"doc-{n}",) for n in range(1, 5)]
    assert keyed.sql("select source_id from results.notes order by 1") == shown
    publish(keyed, of_day(keyed, 2, 1))
    publish(keyed, of_day(keyed, 2, 1))
    assert keyed.sql("select source_id from results.notes order by 1") == shown
    back = of_day(keyed, 4, 1)
    publish(keyed, back)
    assert keyed.sql(SHOWN)[0] == ("doc-0", back.batch_id)
    part = "(select part_id from nightmill.published)"
    assert keyed.sql(f"select count(*) from nightmill.deleted_key where part_id = {part}") == [(0,)]


@dataclass(frozen=True)
class Newest:
    """What a model of the view knows of an id."""

    newness: tuple[datetime, datetime]
    batch_id: int
    deleted: bool


@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_a_model_over_batches_in_any_order(keyed: Ledger, seed: int) -> None:
    drawn = random.Random(seed)
    model: dict[str, Newest] = {}
    for _ in range(8):
        batch = of_day(keyed, drawn.randrange(6), drawn.randrange(1, 9))
        ids = [f"doc-{n}" for n in range(batch.item_count or 0)]
        gone = drawn.sample(ids, drawn.randrange(len(ids)))
        mark_deleted(keyed, batch, *gone)
        publish(keyed, batch)
        assert batch.data_interval_end and batch.frozen_at
        mine = (batch.data_interval_end, batch.frozen_at)
        for one in ids:
            if one not in model or model[one].newness <= mine:
                model[one] = Newest(mine, batch.batch_id, one in gone)
        assert keyed.sql(SHOWN) == [(one, now.batch_id) for one, now in sorted(model.items()) if not now.deleted]


def test_what_was_built_before_another_publication_is_refused_and_dropped_by_the_next_try(keyed: Ledger) -> None:
    first, late = of_day(keyed, 1, 3), of_day(keyed, 0, 5)
    built = build(keyed, late)
    publish(keyed, first)
    with pytest.raises(OutOfDate):
        flip(keyed, late, built)
    assert keyed.sql(TABLES) == [(2,)]
    publish(keyed, late)
    assert keyed.sql(TABLES) == [(2,)]  # one of each publication
    assert keyed.sql("select count(*) from nightmill.part_build") == [(0,)]
    assert [batch for _, batch in keyed.sql(SHOWN)] == [first.batch_id] * 3 + [late.batch_id] * 2


def test_a_builder_whose_part_another_try_dropped_stops(keyed: Ledger) -> None:
    batch = of_day(keyed, 1)
    slow = build(keyed, batch)
    again = build(keyed, batch)
    with pytest.raises(StaleWriter):
        flip(keyed, batch, slow)
    flip(keyed, batch, again)


def test_chunks_cover_a_part(keyed: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_builds, "CHUNK_PAGES", 2)
    publish(keyed, of_day(keyed, 0, 3_000))
    publish(keyed, of_day(keyed, 1, 700))
    assert keyed.sql("select count(*), count(distinct source_id) from results.notes") == [(3_000, 3_000)]
    with keyed.writer() as conn:
        row = conn.execute("select part_id from nightmill.published").fetchone()
        assert row is not None
        assert len(list(part_builds.chunks(conn, "rows_notes", row[0]))) > 5


def test_a_rollback_shows_the_earlier_part_and_the_ids_that_were_deleted_then(keyed: Ledger) -> None:
    first, deletes, other = of_day(keyed, 1, 5), of_day(keyed, 3, 1), of_day(keyed, 4, 3, prefix="other-")
    mark_deleted(keyed, deletes, "doc-0")
    publish(keyed, first)
    before = keyed.sql(SHOWN)
    publish(keyed, deletes)
    deleted = keyed.sql(SHOWN)
    publish(keyed, other)
    roll_back(keyed, to=1)
    assert keyed.sql(SHOWN) == before
    assert keyed.sql(TOMBSTONES) == []
    back = of_day(keyed, 2, 1)
    publish(keyed, back)
    assert keyed.sql(SHOWN)[0] == ("doc-0", back.batch_id)
    roll_back(keyed, to=2)
    assert keyed.sql(SHOWN) == deleted
    assert keyed.sql(TOMBSTONES) == [("doc-0", deletes.batch_id)]
    publish(keyed, of_day(keyed, 2, 2))  # older than the deletion: only doc-1 is newer than what is shown
    assert [one for one, _ in keyed.sql(SHOWN)] == [f"doc-{n}" for n in range(1, 5)]


def test_a_rollback_whose_part_is_gone_is_refused_though_the_batch_has_its_own(keyed: Ledger) -> None:
    publish(keyed, of_day(keyed, 1, 5))
    publish(keyed, of_day(keyed, 2, 3))
    with keyed.admin(autocommit=True) as conn:
        assert partitions.retire(conn, "rows_notes", -1, 5)
    with pytest.raises(Terminal, match=r"rows of publication 1 of .* are not all kept"):
        roll_back(keyed, to=1)


TOMBSTONES = (
    "select source_id, batch_id from nightmill.deleted_key "
    "where part_id = (select part_id from nightmill.published) order by 1"
)


def roll_back(ledger: Ledger, to: int) -> None:
    """Roll back, and release what that holds."""
    with ledger.writer() as conn:
        rollbacks.carry_out(conn, rollbacks.plan(conn, "notes", to), "tester", reason=None, revoke=False)
        holds.release(conn, holds.open_of(conn, "notes"), "tester")

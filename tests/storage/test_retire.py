"""Retiring a job: its view and rows go, what it paid stays."""

from __future__ import annotations

import pytest
from support.ledger import Ledger, apply

from nightmill.domain.errors import ConfigError, Terminal
from nightmill.domain.states import BatchState
from nightmill.operations import retire
from nightmill.storage import partitions, publications, rollbacks

LEFT = "select to_regclass('results.notes'), to_regclass('nightmill.rows_notes')"


def test_a_retired_jobs_view_and_rows_are_gone_and_its_batches_and_history_stay(ledger: Ledger) -> None:
    batches = [ledger.validating(5), ledger.validating(5)]
    for one in batches:
        ledger.publish(one)
    with ledger.writer() as conn:
        rollbacks.carry_out(conn, rollbacks.plan(conn, "notes"), "ann", reason=None, revoke=True)
    assert retire.look(ledger.admin_dsn, "notes") == ["notes"]
    assert retire.run(ledger.admin_dsn, "notes", "ann") == ["notes"]
    assert ledger.sql(LEFT) == [(None, None)]
    assert ledger.sql("select count(*) from nightmill.batch where state = 'PUBLISHED'") == [(2,)]
    assert ledger.sql("select count(*) from nightmill.publication") == [(3,)]
    assert ledger.sql("select released_by from nightmill.hold") == [("ann",)]
    with ledger.writer() as conn:
        assert publications.current(conn, "notes") is None
    with pytest.raises(ConfigError, match="No job 'notes' has a view"):
        retire.look(ledger.admin_dsn, "notes")
    with ledger.admin(autocommit=True) as conn:  # retention goes on with what it has left to drop
        assert partitions.retire(conn, "rows_notes", batches[0].batch_id, 5)

    assert apply(ledger.admin_dsn, ledger.job) == "created"
    again = ledger.validating(7)
    ledger.publish(again)
    assert ledger.sql("select count(*) from results.notes") == [(7,)]


def test_a_job_with_a_live_batch_is_not_retired(ledger: Ledger) -> None:
    batch = ledger.frozen()
    with pytest.raises(Terminal, match=f"batches that have not ended: {batch.batch_id}") as refused:
        retire.look(ledger.admin_dsn, "notes")
    assert "cancel --batch N" in refused.value.remedy
    ledger.move(batch, BatchState.CANCELLED)
    assert retire.run(ledger.admin_dsn, "notes", "ann") == ["notes"]


def test_what_depends_on_the_view_is_named_and_nothing_is_dropped(ledger: Ledger) -> None:
    ledger.publish(ledger.validating(5))
    ledger.sql("create view public.long_notes as select source_id from results.notes where pages > 2")
    with pytest.raises(Terminal, match=r"view public\.long_notes depends on view results\.notes"):
        retire.run(ledger.admin_dsn, "notes", "ann")
    assert ledger.sql("select count(*) from results.notes") == [(5,)]
    ledger.sql("drop view public.long_notes")
    assert retire.run(ledger.admin_dsn, "notes", "ann") == ["notes"]


def test_a_reader_that_keeps_the_view_busy_makes_it_a_later_try(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nightmill.storage import retiring

    monkeypatch.setattr(retiring, "LOCK_TIMEOUT", "100ms")
    ledger.publish(ledger.validating(5))
    with ledger.reader() as conn:
        conn.execute("select count(*) from results.notes")
        with pytest.raises(ConfigError, match=r"Readers keep results\.notes busy"):
            retire.run(ledger.admin_dsn, "notes", "ann")
    assert retire.run(ledger.admin_dsn, "notes", "ann") == ["notes"]

"""What a reader of the view sees while batches are published, attached and retired: one whole batch, and no wait."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from psycopg import IsolationLevel, errors
from support.figures import note
from support.ledger import LOOK, Ledger, apply

from nightmill.domain.errors import Blocked, Terminal
from nightmill.domain.gates import GATES
from nightmill.domain.states import BatchState
from nightmill.operations import apply as apply_stage
from nightmill.storage import batches, fence, gates, publications
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

READERS = 20


@contextmanager
def polling(ledger: Ledger, expected: dict[int, int]) -> Iterator[list[list[int]]]:
    """Twenty sessions poll the view; half in read committed, half in repeatable-read transactions of five looks, the
    first of which open before the body runs. Yields the batches each one saw, in order."""
    seen: list[list[int]] = [[] for _ in range(READERS)]
    faults: list[BaseException] = []
    stop = threading.Event()
    ready = threading.Barrier(READERS + 1)

    def look(conn: Connection, number: int) -> int:
        row = conn.execute(LOOK).fetchone()
        assert row is not None
        rows, first, last, titles = row
        assert first == last, f"rows of the batches {first} to {last} at once"
        assert titles == 1
        assert rows == expected[first], f"{rows} rows of batch {first}"
        seen[number].append(first)
        return int(first)

    def read(number: int) -> None:
        try:
            with ledger.reader(autocommit=number % 2 == 0) as conn:
                conn.isolation_level = IsolationLevel.REPEATABLE_READ if number % 2 else None
                while not stop.is_set():
                    shown = look(conn, number)
                    if len(seen[number]) == 1:
                        ready.wait(20)
                    if number % 2:
                        for _ in range(4):
                            time.sleep(0.02)
                            assert look(conn, number) == shown, "a repeatable-read transaction changed batches"
                        conn.commit()
                    time.sleep(0.005)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=read, args=(number,), daemon=True) for number in range(READERS)]
    for thread in threads:
        thread.start()
    ready.wait(20)
    try:
        yield seen
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)
    assert not faults


def test_twenty_readers_see_whole_batches_only_while_six_are_published(ledger: Ledger) -> None:
    expected = {}
    made = []
    for size in (700, 1100, 300, 900, 500, 1300):
        batch = ledger.validating(size)
        expected[batch.batch_id] = size
        made.append(batch)
    ledger.publish(made[0])

    with polling(ledger, expected) as seen:
        for batch in made[1:]:
            time.sleep(0.25)
            ledger.publish(batch)
        time.sleep(0.3)

    looks = sum(map(len, seen))
    note(f"{READERS} readers looked {looks} times during {len(made) - 1} publications")
    for batches_seen in seen:
        assert batches_seen == sorted(batches_seen)
        assert len(set(batches_seen)) >= 3
        assert batches_seen[-1] == made[-1].batch_id


def test_a_repeatable_read_transaction_opened_before_keeps_its_batch(ledger: Ledger) -> None:
    first, second = ledger.validating(30), ledger.validating(40)
    ledger.publish(first)
    with ledger.reader() as old, ledger.reader() as untouched:
        for conn in (old, untouched):
            conn.isolation_level = IsolationLevel.REPEATABLE_READ
        untouched.execute("select 1")  # its snapshot is taken; it has not touched the view yet
        assert old.execute(LOOK).fetchone() == (30, first.batch_id, first.batch_id, 1)
        ledger.publish(second)
        for conn in (old, untouched):
            assert conn.execute(LOOK).fetchone() == (30, first.batch_id, first.batch_id, 1)
            conn.commit()
            assert conn.execute(LOOK).fetchone() == (40, second.batch_id, second.batch_id, 1)


def test_grants_dependants_and_prepared_statements_survive_publishing(ledger: Ledger) -> None:
    first, second = ledger.validating(30), ledger.validating(40)
    ledger.publish(first)
    ledger.sql("create role analyst")
    try:
        ledger.sql("grant select on results.notes to analyst")
        ledger.sql("create view public.long_notes as select source_id, pages from results.notes where pages >= 20")
        with ledger.reader() as conn:
            conn.prepare_threshold = 0
            assert len(conn.execute("select * from results.notes", prepare=True).fetchall()) == 30
            conn.commit()
            ledger.publish(second)
            assert len(conn.execute("select * from results.notes", prepare=True).fetchall()) == 40
        assert ledger.sql("select count(*) from public.long_notes") == [(20,)]
        with ledger.admin() as conn:
            conn.execute("grant usage on schema results to analyst")
            conn.execute("set local role analyst")
            assert conn.execute(LOOK).fetchone() == (40, second.batch_id, second.batch_id, 1)
            conn.rollback()
    finally:
        ledger.sql("drop owned by analyst")
        ledger.sql("drop role analyst")


def test_only_an_older_pointer_can_be_replaced_and_only_where_no_gate_refuses(ledger: Ledger) -> None:
    now = datetime.now(UTC)
    newer, older = ledger.validating(interval_end=now), ledger.validating(interval_end=now - timedelta(days=1))
    ledger.publish(newer)
    with pytest.raises(Terminal, match=f"shows batch {newer.batch_id}, which is newer"):
        ledger.publish(older)
    assert batches_state(ledger, older) is BatchState.VALIDATING  # the refused transaction left nothing

    third = ledger.validating(interval_end=now + timedelta(days=1))

    def refuse() -> None:
        raise Blocked("compare is closed", "Clear compare.")

    with pytest.raises(Blocked, match="compare is closed"), ledger.writer() as conn:
        publications.publish(conn, third, "tester", refuse)
    assert batches_state(ledger, third) is BatchState.VALIDATING
    ledger.publish(third)
    assert ledger.sql("select kind, batch_id from nightmill.publication order by publish_seq") == [
        ("publish", newer.batch_id),
        ("publish", third.batch_id),
    ]


def test_verdicts_of_an_older_generation_open_nothing(ledger: Ledger) -> None:
    batch = ledger.validating()
    ledger.sql("update nightmill.batch set generation = 2")
    with ledger.writer() as conn:
        again = batches.get(conn, batch.batch_id)
        assert gates.newest(conn, again.holder) == []
        assert [one.gate for one in gates.newest(conn, fence.Holder(batch.batch_id, 1))] == list(GATES)


def batches_state(ledger: Ledger, batch: Batch) -> BatchState:
    with ledger.writer() as conn:
        return batches.get(conn, batch.batch_id).state


def test_a_reader_reaches_the_view_and_nothing_behind_it(ledger: Ledger) -> None:
    ledger.publish(ledger.validating(5))
    with ledger.reader() as conn:
        assert conn.execute(LOOK).fetchone() is not None
        assert conn.execute("select count(*) from nightmill.published").fetchone() == (1,)
        for table in ("rows_notes", "item", "result", "outcome", "batch", "contract"):
            with pytest.raises(errors.InsufficientPrivilege):
                conn.execute(f"select 1 from nightmill.{table}")
            conn.rollback()


# Cheap, so that the planner asks it before it asks which batch is shown.
_LEAK = """
create function pg_temp.seen(batch_id bigint, title text) returns boolean language plpgsql cost 0.0000001 as
$$ begin raise notice '%', batch_id; return true; end $$
"""


def _leaked(ledger: Ledger) -> set[int]:
    """The batches of which a reader's own function gets rows to see."""
    with ledger.reader() as conn:
        seen: set[int] = set()
        conn.add_notice_handler(lambda notice: seen.add(int(notice.message_primary or 0)))
        conn.execute(_LEAK)
        conn.execute("set enable_partition_pruning = off")
        conn.execute("select count(*) from results.notes where pg_temp.seen(batch_id, title)")
        conn.execute("select max(pages) filter (where pg_temp.seen(batch_id, title)) from results.notes")
        conn.rollback()
    return seen


def test_a_readers_own_function_sees_no_row_of_a_batch_that_is_not_published(ledger: Ledger) -> None:
    shown, earlier, staged = ledger.validating(5), ledger.validating(6), ledger.validating(7)
    ledger.publish(shown)
    assert staged.batch_id != earlier.batch_id
    assert _leaked(ledger) == {shown.batch_id}


_OF_BEFORE = """
    drop view results.notes;
    alter table nightmill.rows_notes disable row level security;
    drop policy published on nightmill.rows_notes;
    create view results.notes as
    select source_id, source_version, tenant, domain, batch_id, result_id, reused, model, prompt_version, answered_at,
        citations, title, pages
    from nightmill.rows_notes
    where batch_id = (select batch_id from nightmill.published where view_name = 'notes');
    alter view results.notes owner to nightmill_owner;
    grant select on results.notes to nightmill_reader, nightmill_writer
"""
_GRANTS = (
    "select shown.oid, acl.grantee, acl.privilege_type from pg_class as shown, aclexplode(shown.relacl) as acl "
    "where shown.oid = 'results.notes'::regclass and acl.grantee <> shown.relowner order by 2, 3"
)


def test_apply_protects_a_view_of_before_and_keeps_its_grants(ledger: Ledger) -> None:
    shown, staged = ledger.validating(5), ledger.validating(6)
    ledger.publish(shown)
    ledger.sql(_OF_BEFORE)
    assert _leaked(ledger) == {shown.batch_id, staged.batch_id}
    before = ledger.sql(_GRANTS)
    assert apply(ledger.admin_dsn, ledger.job) == "redefined"
    assert _leaked(ledger) == {shown.batch_id}
    assert before == ledger.sql(_GRANTS)
    assert apply(ledger.admin_dsn, ledger.job) == "unchanged"


def test_apply_protects_a_view_whose_job_has_no_folder_any_more(ledger: Ledger, tmp_path: Path) -> None:
    shown = ledger.validating(5)
    ledger.publish(shown)
    ledger.validating(6)
    ledger.sql(_OF_BEFORE)
    left = ("notes", "notes", "orphaned")
    for outcomes in ([("notes", "notes", "redefined"), left], [left]):
        done = apply_stage.run(ledger.admin_dsn, tmp_path)
        assert [(one.job, one.view, one.outcome) for one in done] == outcomes
    assert _leaked(ledger) == {shown.batch_id}


def test_no_view_hides_rows_by_its_condition_alone(ledger: Ledger) -> None:
    """A view without a condition hides no row. The console may read every row that provider_batch_usage leaves out."""
    open_views = ledger.sql(
        "select oid::regclass::text, pg_get_viewdef(oid) from pg_class where relkind = 'v' "
        "and relnamespace in ('nightmill'::regnamespace, 'results'::regnamespace) "
        "and not coalesce(reloptions @> array['security_barrier=true'], false) order by 1"
    )
    texts = {name: _outside_brackets(text) if name.startswith("results.") else text for name, text in open_views}
    lacking = [name for name, text in texts.items() if re.search(r"\bwhere\b", text, re.IGNORECASE)]
    assert lacking == ["nightmill.attempt_cost", "nightmill.provider_batch_usage"]
    for table in ("attempt", "batch", "provider_batch", "price"):
        may_read = f"select has_table_privilege('nightmill_console', 'nightmill.{table}', 'select')"
        assert ledger.sql(may_read) == [(True,)]


def _outside_brackets(text: str) -> str:
    """A sub-query's condition hides no row of the view."""
    while (shorter := re.sub(r"\([^()]*\)", "", text)) != text:
        text = shorter
    return text

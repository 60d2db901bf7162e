"""A ledger from before parts is carried over with its rows, its view and what depends on that."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from support.ledger import Ledger, apply, definition

from dev.stack.postgres import Server
from nightmill.storage import migrate, partitions
from nightmill.storage.migrate import init_db, migrations

END = datetime(2026, 3, 2, tzinfo=UTC)
_TABLE_OF_BEFORE = """
set role nightmill_owner;
insert into nightmill.view_definition (view_name, job, columns) values ('notes', 'notes', '[]');
create table nightmill.rows_notes (
    batch_id bigint not null, ordinal bigint, source_id text not null, source_version text, tenant text, domain text,
    result_id bigint not null, reused boolean, model text, prompt_version text, answered_at timestamptz,
    citations jsonb, title text, pages bigint
) partition by list (batch_id);
create trigger guard_settling after insert on nightmill.rows_notes
    referencing new table as written for each statement execute function nightmill.guard_settling();
grant select, insert on nightmill.rows_notes to nightmill_writer;
create view results.notes as select source_id, source_version, tenant, domain, batch_id, result_id, reused, model,
    prompt_version, answered_at, citations, title, pages from nightmill.rows_notes;
grant select on results.notes to nightmill_reader, nightmill_writer;
alter table nightmill.rows_notes enable row level security;
create policy published on nightmill.rows_notes for select to nightmill_view_owner
using (batch_id = (select published.batch_id from nightmill.published where published.view_name = 'notes'));
create policy written on nightmill.rows_notes to nightmill_writer using (true) with check (true);
grant select on nightmill.rows_notes to nightmill_view_owner;
grant create on schema results to nightmill_view_owner;
alter view results.notes owner to nightmill_view_owner;
revoke create on schema results from nightmill_view_owner;
"""
_ROWS_OF_BEFORE = """
insert into nightmill.rows_notes (batch_id, ordinal, source_id, result_id, title, pages)
select %s, n, 'doc-' || n, n, 'batch ' || %s, n from generate_series(0, 9) as n
"""
_PUBLISH_OF_BEFORE = """
update nightmill.batch set state = 'PUBLISHED', ended_at = now() where batch_id = %(batch)s;
insert into nightmill.publication (view_name, batch_id, kind, published_by, counts, gaps)
values ('notes', %(batch)s, 'publish', 'tester', '{"accepted": 10}', 0);
insert into nightmill.published (view_name, batch_id, publish_seq, published_at, gaps)
select view_name, batch_id, publish_seq, published_at, gaps from nightmill.publication
"""


@pytest.fixture
def before(make_database: Callable[..., str], postgres_server: Server, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger without parts, with the logins of a writer and a reader."""
    dsn = make_database()
    with monkeypatch.context() as patched:
        earlier = [one for one in migrations() if one[1] != "parts" and one[0] < 31]
        patched.setattr(migrate, "migrations", lambda: earlier)
        init_db(dsn)
    database = dsn.rsplit("/", 1)[1]
    logins = []
    for role in ("writer", "reader"):
        postgres_server.create_login(f"nightmill_test_{role}")
        logins.append(postgres_server.dsn(database, f"nightmill_test_{role}"))
    ledger = Ledger(dsn, *logins, definition())
    for role in ("writer", "reader"):
        ledger.sql(f"grant nightmill_{role} to nightmill_test_{role}")
    with ledger.admin() as conn:
        conn.execute(_TABLE_OF_BEFORE)
    return ledger


def test_rows_views_and_dependants_of_before_live_on(before: Ledger) -> None:
    shown, staged = (
        before.validating(rows=False, judged=False, interval_start=END - timedelta(days=1), interval_end=END)
        for _ in range(2)
    )
    with before.admin() as conn:
        conn.execute("set session_replication_role = replica")
        for batch in (shown, staged):
            conn.execute(_ROWS_OF_BEFORE, (batch.batch_id, batch.batch_id))
        for statement in _PUBLISH_OF_BEFORE.split(";"):
            conn.execute(statement, {"batch": shown.batch_id})
    before.sql("create view public.titles as select distinct title from results.notes")
    with before.writer() as conn:
        partitions.create(conn, "rows_notes", 77)  # beside its parent: a task makes it anew

    assert init_db(before.admin_dsn)[0] == "0031_parts"

    look = "select count(*), min(title), max(title) from results.notes"
    told = (10, f"batch {shown.batch_id}", f"batch {shown.batch_id}")
    with before.reader() as conn:
        assert conn.execute(look).fetchone() == told
    outcome = apply(before.admin_dsn, before.job)
    assert outcome == "redefined"
    assert before.sql("select title from public.titles") == [(told[1],)]
    with before.reader() as conn:
        assert conn.execute(look).fetchone() == told
        assert conn.execute("select distinct data_interval_end from results.notes").fetchall() == [(END,)]
        assert conn.execute("select count(published_at) from results.notes").fetchone() == (10,)
    again = before.validating(4, interval_start=END, interval_end=END + timedelta(days=1))
    before.publish(again)
    assert before.sql("select batch_id, count(*) from results.notes group by 1") == [(again.batch_id, 4)]
    with before.admin(autocommit=True) as owner:
        assert partitions.retire(owner, "rows_notes", shown.batch_id, timeout_s=5) is True
    assert before.sql("select part_id, interval_end from nightmill.publication_part order by publish_seq") == [
        (shown.batch_id, END),
        (again.batch_id, END + timedelta(days=1)),
    ]

"""Queries of a job that try to write: the source query and gold.query, with and without parameters."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from dev.stack.postgres import Server
from nightmill.domain.errors import SourceError
from nightmill.jobs.settings.gate_settings import Gold
from nightmill.jobs.settings.job import Source
from nightmill.storage.gold import load
from nightmill.storage.sources import SourceSnapshot

# Queries that leave the READ ONLY transaction if the server takes more than one statement of them, or if a statement
# could switch it off. `HERE` is a condition.
SELECT = "select * from documents where HERE"
CLOSED = f"{SELECT}) as source limit 0; BODY; select * from ({SELECT}"
BODIES = (
    "commit; delete from documents",
    "rollback; delete from documents",
    "end; begin read write; delete from documents; commit",
    "abort; set session characteristics as transaction read write; begin; delete from documents; commit",
    "set transaction read write; delete from documents; commit",
    "commit; set role postgres; delete from documents",
    "commit; do $$ begin delete from documents; end $$",
    "commit; do $tag$ begin execute 'delete from documents'; end $tag$",
    "commit; call writing()",
    "commit; /* ; */ delete from documents --",
    "commit; select writes_anyway(); select nextval('writes')",
)
SEVERAL = [
    *(CLOSED.replace("BODY", body) for body in BODIES if not body.endswith("--")),
    *(f"{SELECT}; {body}; {SELECT}" for body in BODIES),
]
SINGLE = [
    f"select *, writes_anyway() from ({SELECT}) as d",
    f"select *, set_config('transaction_read_only', 'off', false), writes_anyway() from ({SELECT}) as d",
    f"select *, set_config('default_transaction_read_only', 'off', false), writes_anyway() from ({SELECT}) as d",
    f"select *, set_config('role', 'postgres', false), writes_anyway() from ({SELECT}) as d",
    f"select * from ({SELECT} for update) as d",
    f"with gone as (delete from documents returning *) {SELECT}",
    "delete from documents where HERE returning *",
    "commit",
    "set transaction read write",
    "begin",
    "do $$ begin delete from documents; end $$",
    "call writing()",
    "copy documents to stdout",
    "explain analyze delete from documents",
    "truncate documents",
]


@pytest.fixture(scope="module")
def attacked(postgres_server: Server) -> Iterator[str]:
    """Documents, and functions that write. No test changes anything there: each looks that it is so."""
    postgres_server.create_database("attacked")
    made = postgres_server.dsn("attacked")
    with psycopg.connect(made) as conn:
        conn.execute("create table documents (id text, body text, at date)")
        conn.execute("insert into documents values ('a', 'text a', '2026-01-01'), ('b', 'text b', '2026-01-02')")
        conn.execute("create sequence writes")
        conn.execute(
            "create function writes_anyway() returns int language plpgsql security definer as $$ "
            "begin delete from documents; return nextval('writes'); end $$"
        )
        conn.execute("create procedure writing() language plpgsql as $$ begin commit; delete from documents; end $$")
    yield made
    postgres_server.drop_database("attacked")


def source(query: str) -> Source:
    return Source.model_validate({"conn_id": "src", "query": query, "columns": {"id": "id", "text": "body"}})


@pytest.mark.parametrize("query", [*SEVERAL, *SINGLE])
def test_no_query_changes_anything_with_and_without_parameters(attacked: str, query: str) -> None:
    plain, bound = (query.replace("HERE", condition) for condition in ("true", "at > %(data_interval_start)s"))
    for attack, parameters in ((plain, {}), (bound, {"data_interval_start": "2000-01-01"})):
        with pytest.raises(SourceError), SourceSnapshot(attacked, source(attack), ("body",)) as snapshot:
            list(snapshot.rows(parameters, None))
        with pytest.raises(SourceError), SourceSnapshot(attacked, source(attack), ("body",)) as snapshot:
            snapshot.refuse_doubled_ids(parameters, 3)
    gold = Gold(query=plain, fields=("body",))
    with psycopg.connect(attacked) as ledger, pytest.raises(SourceError):
        load(ledger, attacked, "src", gold, statement_timeout_s=60)
    with psycopg.connect(attacked) as conn:
        assert conn.execute("select count(*), (select is_called from writes) from documents").fetchone() == (2, False)

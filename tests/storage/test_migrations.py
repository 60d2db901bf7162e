"""Migrations: what they make, that they run once and in order, and which ledgers are refused."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg
import pytest
from support import development_ledger

from dev.stack.postgres import Server
from nightmill.domain import states
from nightmill.domain.errors import ConfigError, Transient
from nightmill.storage import migrate, prices
from nightmill.storage.migrate import init_db, migrations
from nightmill.storage.session import connect

# Which transaction wrote each row of the catalogs last: the same rows again where nothing was made or changed.
_CATALOGS = """
select 'relation', oid::regclass::text, xmin::text from pg_class
where relnamespace in ('nightmill'::regnamespace, 'results'::regnamespace)
union all
select 'function', oid::regprocedure::text, xmin::text from pg_proc
where pronamespace in ('nightmill'::regnamespace, 'results'::regnamespace)
union all
select 'column', attrelid::regclass || '.' || attname, pg_attribute.xmin::text from pg_attribute
join pg_class on pg_class.oid = attrelid
where relnamespace in ('nightmill'::regnamespace, 'results'::regnamespace)
"""


def _catalogs(dsn: str) -> set[tuple[str, str, str]]:
    with psycopg.connect(dsn) as conn:
        return set(conn.execute(_CATALOGS).fetchall())


def test_an_empty_database_becomes_a_ledger(make_database: Callable[..., str]) -> None:
    dsn = make_database()
    assert init_db(dsn) == ["0001_schema"]
    with psycopg.connect(dsn) as conn:
        assert conn.execute("select number, name from nightmill.migration").fetchall() == [(1, "schema")]
        foreign = conn.execute(
            "select oid::regclass::text from pg_class where relnamespace in ('nightmill'::regnamespace, "
            "'results'::regnamespace) and pg_get_userbyid(relowner) <> 'nightmill_owner'"
        ).fetchall()
    assert foreign == []


def test_later_migrations_run_once_and_in_order(make_database: Callable[..., str], ledger_template: str) -> None:
    dsn = make_database(ledger_template)
    later = [
        (number, f"step_{number}", f"create table nightmill.step_{number} as select * from nightmill.{source}")
        for number, source in ((2, "price"), (3, "step_2"))
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(migrate, "migrations", lambda: [*migrations(), *later])
        assert init_db(dsn) == ["0002_step_2", "0003_step_3"]
        assert init_db(dsn) == []


def test_the_databases_edges_are_the_codes_edges(make_database: Callable[..., str], ledger_template: str) -> None:
    with psycopg.connect(make_database(ledger_template)) as conn:
        rows = conn.execute("select entity, from_state, to_state from nightmill.state_edge").fetchall()
    assert set(rows) == states.all_edges()


@pytest.mark.parametrize("entity", ["batch", "shard", "provider_batch"])
def test_the_databases_states_are_the_codes_states(
    make_database: Callable[..., str], ledger_template: str, entity: str
) -> None:
    with psycopg.connect(make_database(ledger_template)) as conn:
        row = conn.execute(
            "select pg_get_constraintdef(oid) from pg_constraint where conname = %s", (f"{entity}_state_known",)
        ).fetchone()
    assert row is not None
    assert {part for part in row[0].split("'") if part.isupper() and part.replace("_", "").isalpha()} == {
        str(state) for state in states.EDGE_TABLES[entity]
    }


def test_migration_numbers_have_no_gap() -> None:
    assert [number for number, _, _ in migrations()] == list(range(1, len(migrations()) + 1))


def test_initialising_twice_changes_nothing(make_database: Callable[..., str]) -> None:
    dsn = make_database()
    assert len(init_db(dsn)) == len(migrations())
    before = _catalogs(dsn)
    assert before
    assert init_db(dsn) == []
    assert _catalogs(dsn) == before


def test_two_initialisations_at_a_time_run_each_migration_once(make_database: Callable[..., str]) -> None:
    dsn = make_database()
    ran: list[list[str]] = []
    threads = [threading.Thread(target=lambda: ran.append(init_db(dsn))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(len(names) for names in ran) == [0, len(migrations())]


def test_databases_of_one_server_can_be_initialised_at_a_time(make_database: Callable[..., str]) -> None:
    ran: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda dsn=dsn: ran.append(init_db(dsn))) for dsn in [make_database() for _ in range(3)]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [len(names) for names in ran] == [len(migrations())] * 3


def test_a_ledger_of_a_newer_nightmill_is_refused(make_database: Callable[..., str], ledger_template: str) -> None:
    dsn = make_database(ledger_template)
    with psycopg.connect(dsn) as conn:
        conn.execute("insert into nightmill.migration (number, name) values (9999, 'from_the_future')")
    with pytest.raises(ConfigError, match="migration 9999 is unknown"):
        init_db(dsn)


def test_a_ledger_of_a_development_version_is_refused_unchanged(
    make_database: Callable[..., str], ledger_template: str
) -> None:
    dsn = make_database(ledger_template)
    development_ledger.pretend(dsn)
    before = _catalogs(dsn)
    with pytest.raises(
        ConfigError,
        match=r"^This ledger was made by a development version of nightmill, .*"
        r"Remedy: Run `make clean` \(local stack\) or create a new database\.$",
    ):
        init_db(dsn)
    assert _catalogs(dsn) == before


def test_a_login_without_createrole_is_told_what_it_lacks(
    make_database: Callable[..., str], ledger_template: str, postgres_server: Server
) -> None:
    dsn = make_database(ledger_template)
    postgres_server.create_login("no_setter_up")
    with pytest.raises(
        ConfigError, match=r"may not set up the ledger.*Remedy: Run init-db with a login that has CREATEROLE"
    ):
        init_db(postgres_server.dsn(dsn.rsplit("/", 1)[1], "no_setter_up"))


def test_prices_are_loaded_and_a_model_without_one_has_none(
    make_database: Callable[..., str], ledger_template: str
) -> None:
    with connect(make_database(ledger_template)) as conn:
        known = conn.execute("select distinct model from nightmill.price").fetchall()
        assert known
        assert prices.of_model(conn, known[0][0])
        assert prices.of_model(conn, "a model nobody knows") == []


def test_a_server_that_is_not_there_is_a_fault_that_passes(postgres_server: Server) -> None:
    dsn = postgres_server.dsn("postgres").replace(f":{postgres_server.port}/", ":1/")
    with pytest.raises(Transient, match="cannot be reached") as caught:
        connect(dsn)
    assert postgres_server.password("postgres") not in str(caught.value)

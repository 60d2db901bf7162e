"""Migrations: what they make, that they can be repeated, and that an older nightmill keeps its hands off."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg
import pytest

from dev.stack.postgres import Server
from dev.write.ledger_schema import DECLARED, dump
from nightmill.domain import states
from nightmill.domain.errors import ConfigError, Transient
from nightmill.storage import prices
from nightmill.storage.migrate import init_db, migrations
from nightmill.storage.session import connect


def test_the_migrations_make_what_is_declared(make_database: Callable[..., str], ledger_template: str) -> None:
    assert dump(make_database(ledger_template)) == DECLARED.read_text("utf-8"), "run `make schema` and look at the diff"


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
    before = dump(dsn)
    assert init_db(dsn) == []
    assert dump(dsn) == before


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

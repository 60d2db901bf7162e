"""What runs with the owner's rights, and what a hostile writer or reader can make of it: nothing. The attacks are real
ones, with the logins that a run and an analyst have."""

from __future__ import annotations

from contextlib import suppress

import psycopg
import pytest
from psycopg import IsolationLevel, errors
from support.ledger import Ledger

from nightmill.domain.errors import ConfigError
from nightmill.storage import partitions
from nightmill.storage.migrate import init_db

OURS = "('nightmill'::regnamespace, 'results'::regnamespace)"
PUBLIC_CALLS = f"""
select oid::regprocedure::text from pg_proc
cross join lateral aclexplode(coalesce(proacl, acldefault('f', proowner))) as granted
where pronamespace in {OURS} and granted.grantee = 0"""
# A type, an operator class or a function of this name would be looked up in pg_temp first by an unguarded path.
TAKES_OWNERSHIP = """
create function pg_temp.take(value pg_catalog.text) returns boolean language plpgsql as $$
begin
    create table nightmill.taken as select current_user as by_whom;
    return true;
exception when insufficient_privilege or duplicate_table then
    return true;
end $$;
create domain pg_temp.text as pg_catalog.text check (pg_temp.take(value));
create domain pg_temp.regclass as pg_catalog.regclass check (pg_temp.take('x'));
"""


def test_every_function_of_ours_looks_into_pg_catalog_first_and_into_pg_temp_last(ledger: Ledger) -> None:
    found = ledger.sql(f"select oid::regprocedure::text, proconfig from pg_proc where pronamespace in {OURS}")
    assert len(found) >= 15
    for function, settings in found:
        assert settings == ["search_path=pg_catalog, pg_temp"], function


def test_no_function_of_ours_can_be_called_by_everybody_nor_one_of_a_later_migration(ledger: Ledger) -> None:
    assert ledger.sql(PUBLIC_CALLS) == []
    with ledger.admin() as conn:
        conn.execute("set local role nightmill_owner")
        conn.execute("create function nightmill.made_later() returns int return 1")
        assert conn.execute(PUBLIC_CALLS).fetchall() == []
        conn.rollback()


def test_a_temporary_catalog_does_not_make_create_partition_drop_an_attached_one(ledger: Ledger) -> None:
    batch = ledger.validating(10)
    ledger.publish(batch)
    with ledger.writer() as conn:
        conn.execute("create temp table pg_inherits (inhrelid oid, inhparent oid)")
        conn.execute("grant select on pg_temp.pg_inherits to public")
        for parent in ("rows_notes", "item", "outcome", "attempt"):
            with pytest.raises(psycopg.DatabaseError, match="attached already"), conn.transaction():
                conn.execute("select nightmill.create_partition(%s, %s)", (parent, batch.batch_id))
    assert ledger.sql("select count(*) from results.notes") == [(10,)]


def test_a_temporary_type_does_not_run_code_as_the_owner(ledger: Ledger) -> None:
    batch = ledger.validating(3)
    ledger.publish(batch)
    calls = [
        "select nightmill.create_partition('rows_notes', 9999)",
        "select nightmill.index_partition('rows_notes', 9999)",
        "select nightmill.attach_partition('rows_notes', 9999)",
        f"insert into nightmill.batch (job, view_name, dag_id, run_id, incarnation, contract_id) "
        f"values ('notes', 'notes', 'd', 'r', 1, {batch.contract_id})",
        "update nightmill.published set gaps = gaps",
    ]
    with ledger.writer() as conn:  # a new session: plans of functions that it called before would be kept
        conn.execute(TAKES_OWNERSHIP)
        for call in calls:
            with suppress(psycopg.Error), conn.transaction():
                conn.execute(call)
    assert ledger.sql("select to_regclass('nightmill.taken')") == [(None,)]


def test_a_guard_cannot_be_put_on_a_table_of_ones_own_to_write_history(ledger: Ledger) -> None:
    functions = ledger.sql(
        f"select oid::regproc::text from pg_proc where pronamespace in {OURS} and prorettype = 'trigger'::regtype"
    )
    assert len(functions) >= 6
    with ledger.writer() as conn:
        conn.execute("create temp table forged (batch_id bigint, state text, state_reason text, generation int)")
        for (function,) in functions:
            with pytest.raises(errors.InsufficientPrivilege), conn.transaction():
                conn.execute(f"create trigger forge before insert on forged for each row execute function {function}()")


def test_an_old_snapshot_does_not_make_create_partition_drop_what_was_attached_since(ledger: Ledger) -> None:
    batch = ledger.created()
    with ledger.writer() as first, ledger.writer() as hostile:
        hostile.isolation_level = IsolationLevel.REPEATABLE_READ
        partitions.create(first, "item", batch.batch_id)
        first.commit()
        hostile.execute("select 1 from nightmill.batch")  # its snapshot knows the partition as unattached
        partitions.attach(first, "item", batch.batch_id)
        first.commit()
        with pytest.raises(psycopg.DatabaseError, match="attached already"):
            hostile.execute("select nightmill.create_partition('item', %s)", (batch.batch_id,))
        hostile.rollback()
        assert partitions.attached(first, "item", batch.batch_id)


def test_only_the_owner_may_create_anything_in_our_schemas(ledger: Ledger) -> None:
    may = ledger.sql(
        "select role.rolname, schema.nspname from pg_roles as role, pg_namespace as schema "
        "where schema.nspname in ('nightmill', 'results') and not role.rolsuper "
        "and has_schema_privilege(role.oid, schema.oid, 'CREATE') "
        "and (role.rolname like 'nightmill%' or role.rolname = 'pg_database_owner')"
    )
    owners = {("nightmill_owner", "nightmill"), ("nightmill_owner", "results")}
    assert {one for one in may if not one[0].startswith("nightmill_test_owner")} == owners


@pytest.mark.parametrize(
    ("prepared", "said", "remedy"),
    [
        ("alter schema results owner to {}", "{} owns the schema results", "alter schema results owner to nightmill_"),
        ("grant create on schema nightmill to {}", "{} may create", 'revoke create on schema nightmill from "{}"'),
        ("grant create on schema nightmill to public", "public may create", "on schema nightmill from public"),
    ],
)
def test_init_db_refuses_a_schema_into_which_somebody_else_may_put_things(
    ledger: Ledger, prepared: str, said: str, remedy: str
) -> None:
    reader = "nightmill_test_reader"
    ledger.sql(prepared.format(reader))
    with pytest.raises(ConfigError, match=said.format(reader)) as caught:
        init_db(ledger.admin_dsn)
    assert remedy.format(reader) in caught.value.remedy

"""Reading source rows: one read-only snapshot, in order, streamed; every fault says what to do and quotes no value."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.figures import note

from dev.stack.postgres import Server
from nightmill.domain.errors import SourceError, Transient
from nightmill.jobs.settings.job import Source
from nightmill.storage import sources
from nightmill.storage.sources import SourceRow, SourceSnapshot

SECRET = "the canary sings"
COLUMNS = {"id": "id", "version": "version", "text": "body", "tenant": "tenant", "domain": "kind"}


@pytest.fixture
def dsn(make_database: Callable[..., str]) -> str:
    made = make_database()
    with psycopg.connect(made) as conn:
        conn.execute("create table documents (id text, version text, tenant text, kind text, body text, at date)")
        conn.execute("create sequence writes")
        rows = [
            ("b", "1", "umbrella", "letter", "text b", "2026-01-02"),
            ("a", "1", "umbrella", "letter", "text a", "2026-01-01"),
            ("Z", "1", "acme", "report", "text Z", "2026-01-03"),
            ("ä", "1", "acme", "letter", "text ä", "2026-01-04"),
            ("c", "1", None, None, SECRET, "2026-01-05"),
        ]
        with conn.cursor() as cursor:
            cursor.executemany("insert into documents values (%s, %s, %s, %s, %s, %s)", rows)
    return made


def source(query: str = "select * from documents", columns: dict[str, Any] | None = None, **values: Any) -> Source:
    return Source.model_validate({"conn_id": "src", "query": query, "columns": columns or COLUMNS} | values)


def read(
    dsn: str, source: Source, parameters: dict[str, Any] | None = None, limit: int | None = None,
    payload: tuple[str, ...] = ("body",),
) -> list[SourceRow]:  # fmt: skip
    with SourceSnapshot(dsn, source, payload) as snapshot:
        return list(snapshot.rows(parameters or {}, limit))


def fault(dsn: str, source: Source, parameters: dict[str, Any] | None = None) -> str:
    with pytest.raises(SourceError) as caught:
        read(dsn, source, parameters)
    assert SECRET not in str(caught.value)
    assert SECRET not in str(caught.value.__cause__)
    return str(caught.value)


def doubled(dsn: str, source: Source, limit: int | None = None) -> str:
    with pytest.raises(SourceError) as caught, SourceSnapshot(dsn, source, ("body",)) as snapshot:
        snapshot.refuse_doubled_ids({}, limit)
    return str(caught.value)


def test_rows_come_by_tenant_domain_and_id_in_byte_order_whatever_the_query_says(dsn: str) -> None:
    rows = read(dsn, source("select * from documents order by body desc"))
    assert [(row.tenant, row.domain, row.source_id) for row in rows] == [
        ("acme", "letter", "ä"),
        ("acme", "report", "Z"),
        ("umbrella", "letter", "a"),
        ("umbrella", "letter", "b"),
        ("", "", "c"),
    ]
    assert [row.source_id for row in read(dsn, source(columns={"id": "id", "text": "body"}))] == list("Zabcä")


def test_the_limit_takes_the_first_rows_of_that_order(dsn: str) -> None:
    assert [row.source_id for row in read(dsn, source(), limit=2)] == ["ä", "Z"]


def test_only_the_columns_of_the_contract_are_kept(dsn: str) -> None:
    assert read(dsn, source(), limit=1, payload=("at", "body"))[0].values.keys() == {"at", "body"}


def test_a_tenant_called_zero_is_a_tenant(dsn: str) -> None:
    (row,) = read(dsn, source("select 'x' as id, '1' as version, 0 as tenant, 7 as kind, 't' as body"))
    assert (row.tenant, row.domain) == ("0", "7")


def test_a_query_may_end_with_a_comment_or_a_semicolon(dsn: str) -> None:
    assert len(read(dsn, source("select * from documents -- all of them"))) == 5
    assert len(read(dsn, source("select * from documents;\n"))) == 5


@pytest.mark.parametrize(
    "end", ["; -- comment", " ;\n/* of; /* all */ */ ;; -- it's\n", ";;", " -- 'a'; b", "; -- 100%%", " /* ; */"]
)
def test_a_query_may_end_with_a_semicolon_and_comments_behind_it(dsn: str, end: str) -> None:
    within = """select *, ';' as a, $b$;-- $b$ as b, e'\\';' as c from (select *, 1 as ";--" from documents) as d"""
    with SourceSnapshot(dsn, source(within + end), ("body", "a", "b", "c", ";--")) as snapshot:
        snapshot.refuse_doubled_ids({}, None)
        rows = list(snapshot.rows({}, 1))
    assert [*rows[0].values.values()] == ["text ä", ";", ";-- ", "';", 1]


def test_two_columns_of_one_name_are_refused_where_the_job_uses_them(dsn: str) -> None:
    twice = "select d.*, upper(d.body) as body from documents as d"
    said = fault(dsn, source(twice))
    assert "The source query returns 2 columns that are called 'body'." in said
    assert "Remedy: Name the one that is meant in source.query" in said
    assert "called 'id' (and more than one 'kind')" in fault(
        dsn, source("select a.*, a.id, a.kind from documents as a")
    )
    unused = source("select *, 1 as other, 2 as other from documents")
    assert read(dsn, unused, limit=1)[0].values == {"body": "text ä"}


def test_values_are_bound_and_never_pasted(dsn: str) -> None:
    query = "select * from documents where at >= %(data_interval_start)s and body <> %(data_interval_end)s"
    rows = read(dsn, source(query), {"data_interval_start": "2026-01-04", "data_interval_end": "'; drop table x; --"})
    assert {row.source_id for row in rows} == {"ä", "c"}


def test_the_snapshot_does_not_move_while_rows_are_read(dsn: str) -> None:
    with SourceSnapshot(dsn, source(), ("body",)) as snapshot:
        with psycopg.connect(dsn) as other:
            other.execute("delete from documents where id <> 'a'")
            other.execute("update documents set body = 'changed'")
        rows = list(snapshot.rows({}, None))
        assert len(rows) == 5
        assert "changed" not in {row.values["body"] for row in rows}
        assert snapshot.name.count(":") == 2


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select *, nextval('writes') from documents", "ReadOnlySqlTransaction"),
        ("with d as (delete from documents returning *) select * from d", "FeatureNotSupported"),
        ("select 1; drop table documents", "syntax error"),
    ],
)
def test_a_query_that_writes_is_refused(dsn: str, query: str, said: str) -> None:
    assert said in fault(dsn, source(query))
    with psycopg.connect(dsn) as conn:
        assert conn.execute("select count(*), (select is_called from writes) from documents").fetchone() == (5, False)


def test_a_query_of_several_statements_is_called_so(dsn: str) -> None:
    said = fault(dsn, source("select * from documents; select 1"))
    assert "syntax error: it holds more than one statement. Remedy: Leave one SELECT" in said


def test_a_missing_column_is_named_with_those_that_there_are(dsn: str) -> None:
    said = fault(dsn, source("select id, version, body from documents"))
    assert "no column 'kind', 'tenant'" in said
    assert "it returns body, id, version" in said


def test_a_missing_parameter_is_named_with_the_remedy(dsn: str) -> None:
    said = fault(dsn, source("select * from documents where at >= %(data_interval_start)s"))
    assert "data_interval_start" in said
    assert "Fill in the data interval" in said


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select * from nowhere", 'relation "nowhere" does not exist'),
        ("select * from documents where body like '5%'", "written %%"),
        ("select *, body::int as number from documents", "InvalidTextRepresentation, SQLSTATE 22P02"),
        ("select *, 1 / (length(body) - length(body)) from documents", "DivisionByZero"),
    ],
)
def test_a_fault_of_the_query_says_where_to_look_without_quoting_a_document(dsn: str, query: str, said: str) -> None:
    assert said in fault(dsn, source(query))


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("'ab'::char(5)", "ab"),
        ("'\\x00ff'::bytea", "\\x00ff"),
        ("0.50::numeric(18,8)", "0.50000000"),
        ("0::numeric(18,8)", "0.00000000"),
        ("true", "true"),
        ("1.0::float8", "1"),
        ("""'{"b": [1, "x"]}'::jsonb""", '{"b": [1, "x"]}'),
        ("""'"a"'::json""", "a"),
        ("'true'::jsonb", "true"),
        ("array['a b', null]", '{"a b",NULL}'),
        ("daterange('2026-01-01', null)", "[2026-01-01,)"),
        ("timestamptz '2026-01-02 03:04:05+01'", "2026-01-02 02:04:05+00"),
        ("'10.1.2.3/24'::inet", "10.1.2.3/24"),
        ("row(1, 'b')", "(1,b)"),
        ("7::bigint", "7"),
    ],
)
def test_ids_versions_tenants_and_domains_are_text_as_postgres_writes_it(dsn: str, written: str, name: str) -> None:
    query = f"select {written} as id, {written} as version, {written} as tenant, {written} as kind, 'x' as body"
    (row,) = read(dsn, source(query))
    assert [row.source_id, row.source_version, row.tenant, row.domain] == [name] * 4
    assert f"returns {name!r} more than once".replace("'a'", """'"a"'""") in doubled(
        dsn, source(f"{query} union all {query}")
    )


@pytest.mark.parametrize("column", ["id", "version"])
def test_a_row_without_an_id_or_a_declared_version_is_refused(dsn: str, column: str) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute(f"update documents set {column} = null where id = 'c'")
    assert f"a row whose '{column}' is null" in fault(dsn, source())


@pytest.mark.parametrize("blank", ["", " \t\n", "\u00a0"])
def test_a_row_with_a_blank_id_is_refused(dsn: str, blank: str) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute("update documents set id = %s where id = 'c'", [blank])
    assert "a row whose 'id' is empty or only white space. Remedy: Leave such rows out" in fault(dsn, source())


def test_ids_that_stand_twice_are_named_whatever_their_tenant_and_domain(dsn: str) -> None:
    more = [("ä", "zeta"), ("a", "acme"), ("b", "umbrella"), ("A", "acme"), ("c ", None)]
    nameless = [("", "acme"), ("", "zeta"), (" ", "acme"), (" ", "zeta"), (None, "acme"), (None, "zeta")]
    with psycopg.connect(dsn) as conn, conn.cursor() as cursor:
        cursor.executemany("insert into documents (id, tenant) values (%s, %s)", more + nameless)
    said = doubled(dsn, source())
    assert "returns 'a', 'b', 'ä' more than once. Remedy: Make source.columns.id unique" in said
    assert "returns 'b', 'ä' more than once" in doubled(dsn, source("select * from documents where id <> 'a';"))


def test_only_the_rows_within_the_limit_are_looked_at_for_doubled_ids(dsn: str) -> None:
    twice = source("select * from documents union all select 'b', '2', null, 'letter', '', null -- 100%%")
    with SourceSnapshot(dsn, twice, ("body",)) as snapshot:
        snapshot.refuse_doubled_ids({}, 4)
        assert [row.source_id for row in snapshot.rows({}, 5)] == ["ä", "Z", "a", "b", "b"]
    assert "returns 'b' more than once" in doubled(dsn, twice, limit=5)


def test_a_query_that_runs_too_long_is_ended(dsn: str) -> None:
    said = fault(dsn, source("select *, pg_sleep(30)::text from documents", statement_timeout_s=1))
    assert "longer than 1 s" in said


def limited(dsn: str, setting: str) -> str:
    """The address with a setting that its database makes for every session."""
    with psycopg.connect(dsn) as conn:
        conn.execute(f"alter database {conn.info.dbname} set {setting}")
    return dsn


def slowly(dsn: str, at_each: Callable[[], object]) -> int:
    """Read a source, and do something else in between."""
    many = "select d.* from documents d, generate_series(1, 100)"
    with SourceSnapshot(dsn, source(many), ("body",)) as snapshot:
        rows = snapshot.rows({}, None)
        next(rows)
        at_each()
        return 1 + sum(1 for _ in rows)


def test_a_server_that_ends_idle_transactions_does_not_end_the_reading(dsn: str) -> None:
    patient = limited(dsn, "idle_in_transaction_session_timeout = '100ms'")
    assert slowly(patient, lambda: time.sleep(0.5)) == 500


@pytest.mark.parametrize("setting", ["idle_in_transaction_session_timeout", "transaction_timeout"])
def test_a_timeout_of_the_server_is_named_and_not_taken_for_bad_data(dsn: str, setting: str) -> None:
    with pytest.raises(SourceError) as caught:
        slowly(f"{dsn}?options=-c%20{setting}%3D100ms", lambda: time.sleep(0.5))
    assert f"The server of 'src' ended the session of the source query by its {setting}." in str(caught.value)
    assert f"set {setting} = 0" in caught.value.remedy


def test_a_query_that_somebody_cancels_is_a_fault_that_passes_and_said_to_be(dsn: str) -> None:
    stop = "select pg_cancel_backend(pid) from pg_stat_activity where application_name like '%freeze'"

    def cancel() -> None:
        with psycopg.connect(dsn, autocommit=True) as other:
            while other.execute(f"{stop} and query like 'FETCH%' and state = 'active'").rowcount < 1:
                time.sleep(0.02)

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(Transient, match="Somebody cancelled the source query at the server of 'src'"):
        read(dsn, source("select *, pg_sleep(3)::text from documents"))
    thread.join()


def test_a_source_that_is_not_there_is_a_fault_that_passes(dsn: str, postgres_server: Server) -> None:
    with pytest.raises(Transient, match="'src' cannot be reached"):
        SourceSnapshot(dsn.replace(f":{postgres_server.port}/", ":1/"), source(), ("body",))


def test_a_source_that_ends_the_connection_is_a_fault_that_passes(dsn: str) -> None:
    with SourceSnapshot(dsn, source("select d.* from documents d, generate_series(1, 5000)"), ("body",)) as snapshot:
        rows = snapshot.rows({}, None)
        next(rows)
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name like '%freeze'"
            )
        with pytest.raises(Transient, match="ended the connection"):
            list(rows)


def test_memory_does_not_grow_with_the_rows(dsn: str) -> None:
    """A hundred thousand documents of 1 kB: 100 MB in all."""
    query = (
        "select n as id, '1' as version, '' as tenant, '' as kind, repeat(md5(n::text), 32) as body "
        "from generate_series(1, 100000) as n"
    )
    with SourceSnapshot(dsn, source(query), ("body",)) as snapshot:
        gc.collect()
        before = most = _resident_bytes()
        count = 0
        for _row in snapshot.rows({}, None):
            count += 1
            if count % 1_000 == 0:
                most = max(most, _resident_bytes())
    note(f"reading 100,000 rows of 1 kB took {(most - before) / 1e6:.1f} MB")
    assert count == 100_000
    assert most - before < 25e6


def test_memory_is_bound_by_the_bytes_of_a_fetch_and_not_by_its_rows(dsn: str) -> None:
    """200 documents of 1 MiB behind 2,000 small ones, in text and in JSON."""
    query = (
        "select n as id, '1' as version, '' as tenant, case when n > 2000 then 'z' else '' end as kind, "
        "case when n > 2000 then repeat(chr(97 + n %% 20), 1 << 20) else 'x' end as body, "
        "case when n > 2000 then jsonb_build_array(repeat('j', 1000)) end as more from generate_series(1, 2200) as n"
    )
    with SourceSnapshot(dsn, source(query), ("body", "more")) as snapshot:
        gc.collect()
        before = most = _resident_bytes()
        sizes = []
        for row in snapshot.rows({}, None):
            sizes.append(len(row.values["body"]))
            most = max(most, _resident_bytes())
    note(f"reading 200 rows of 1 MiB took {(most - before) / 1e6:.1f} MB")
    assert sizes == [1] * 2000 + [1 << 20] * 200
    assert most - before < 300e6  # 256 rows at once where they become large, and then 8 MiB


def test_a_fetch_takes_as_many_rows_as_make_some_mebibytes_by_those_before() -> None:
    asked: list[int] = []

    def fetch(size: int) -> list[tuple[object, ...]]:
        asked.append(size)
        large = sum(asked) > 2_000
        return [("x" * (1 << 20) if large else "y", {"a": ["b" * 100]})] * size if sum(asked) < 3_000 else []

    pages = list(sources._pages(fetch))
    assert asked[:6] == [16, 32, 64, 128, 256, 256]
    assert set(asked[-20:]) == {7}
    assert all(len(page) <= 256 for page in pages)


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("form", ["json", "jsonb"])
def test_numbers_of_json_columns_keep_their_digits(dsn: str, form: str) -> None:
    held = '{"total": 19.99, "count": -7, "account": 98765432109876543210, "pi": 3.14159265358979323846}'
    rows = read(dsn, source(f"select id, version, kind, tenant, '{held}'::{form} as body from documents"))
    exact = {"total": 19.99, "count": -7, "account": "98765432109876543210", "pi": "3.14159265358979323846"}
    assert [row.values for row in rows] == [{"body": exact}] * 5


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("'[1e400, 1e9]'::json", ["1e400", 1e9]),
        ("array['0.1', 'NaN', '-Infinity']::float8[]", [0.1, "NaN", "-Infinity"]),
        ("'Infinity'::float4", "Infinity"),
        ("0.1::float4", 0.1),
    ],
)
def test_a_number_that_json_cannot_hold_is_text(dsn: str, written: str, value: object) -> None:
    rows = read(dsn, source(f"select id, version, kind, tenant, {written} as body from documents"))
    assert rows[0].values == {"body": value}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("timestamptz '2026-01-02 03:04:05.5+01'", "2026-01-02 02:04:05.5+00"),
        ("timestamp 'infinity'", "infinity"),
        ("date '0044-03-15 BC'", "0044-03-15 BC"),
        ("time '24:00'", "24:00:00"),
        ("interval '1 month 2 days'", "1 mon 2 days"),
        ("array[date '2026-01-02', null]", ["2026-01-02", None]),
        ("0::numeric(18,8)", "0.00000000"),
        ("array[0.00000001::numeric(18,8), 'NaN', -1e20]", ["0.00000001", "NaN", "-100000000000000000000"]),
        ("daterange('2026-01-01', null)", "[2026-01-01,)"),
        ("numrange(null, 0.0000000)", "(,0.0000000)"),
        ("'{[1,2),[4,)}'::int4multirange", "{[1,2),[4,)}"),
        ("array[int8range(null, null)]", ["(,)"]),
        ("'ab'::char(5)", "ab"),
        ("array['ab'::char(5), null]", ["ab", None]),
        ("'10.1.2.3/24'::inet", "10.1.2.3/24"),
        ("'::ffff:1.2.3.4'::inet", "::ffff:1.2.3.4"),
    ],
)
def test_dates_times_decimals_and_ranges_are_text_as_postgres_writes_them(
    dsn: str, written: str, value: object
) -> None:
    rows = read(dsn, source(f"select id, version, kind, tenant, {written} as body from documents"))
    assert rows[0].values == {"body": value}

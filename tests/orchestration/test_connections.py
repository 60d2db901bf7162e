"""Airflow connections as what stages need."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

import pytest
from psycopg.conninfo import conninfo_to_dict

from nightmill.domain.errors import ConfigError
from nightmill.orchestration import connections
from nightmill.providers.connection import AnswerLimits
from nightmill.services.connections import AirflowConnection, from_variables, payload_store

SECRET = "s3cret/with:odd@signs %"
QUOTED = "s3cret%2Fwith%3Aodd%40signs%20%25"
Lookup = Callable[[str], AirflowConnection]


def by_async(conn_id: str) -> AirflowConnection:
    return asyncio.run(connections.lookup_async(conn_id))


@pytest.fixture(params=[connections.lookup, by_async, from_variables], ids=["task", "triggerer", "command line"])
def lookup(request: pytest.FixtureRequest) -> Lookup:
    """All three ways must read the same definition alike."""
    return request.param  # type: ignore[no-any-return]


def test_json_gives_every_field(lookup: Lookup, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {
        "conn_type": "postgres", "host": "db.example", "port": 6543, "schema": "ledger", "login": "writer",
        "password": SECRET, "extra": {"sslmode": "require"},
    }  # fmt: skip
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", json.dumps(fields))
    url = lookup("nightmill_db").database_url()
    assert url == f"postgresql://writer:{QUOTED}@db.example:6543/ledger?sslmode=require"


def test_a_uri_gives_every_field(lookup: Lookup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", f"postgres://writer:{QUOTED}@db.example/ledger?sslmode=require")
    found = lookup("nightmill_db")
    assert found.password == SECRET
    assert found.database_url() == f"postgresql://writer:{QUOTED}@db.example:5432/ledger?sslmode=require"


def test_a_provider_is_a_base_url_and_a_key_with_project_and_organization(
    lookup: Lookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"conn_type": "generic", "host": "https://llm.example/v1", "password": "sk-key"}
    monkeypatch.setenv("AIRFLOW_CONN_LLM", json.dumps(fields | {"extra": {"project": "p1", "organization": "o1"}}))
    account = lookup("llm").provider_account(timeout_s=30)
    assert (account.base_url, account.api_key) == ("https://llm.example/v1", "sk-key")
    assert (account.scopes, account.timeout_s) == ({"organization": "o1", "project": "p1"}, 30)


def test_a_provider_over_plain_http_needs_a_yes_in_the_extra_in_every_form(
    lookup: Lookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"conn_type": "generic", "host": "http://provider:8000/v1", "password": "sk-key"}
    for said in (None, False, "false", "no", "0", ""):
        monkeypatch.setenv("AIRFLOW_CONN_LLM", json.dumps(fields | {"extra": {"allow_http": said}}))
        with pytest.raises(ConfigError, match="unencrypted to provider"):
            lookup("llm").provider_account(timeout_s=30)
    for said in (True, "true", "yes", "1"):
        monkeypatch.setenv("AIRFLOW_CONN_LLM", json.dumps(fields | {"extra": {"allow_http": said}}))
        assert lookup("llm").provider_account(timeout_s=30).allow_http


def test_limits_of_answers_are_read_from_the_extra_as_numbers_or_text(
    lookup: Lookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"conn_type": "generic", "host": "https://llm.example/v1", "password": "sk-key"}
    extra = {"max_answer_bytes": 33554432, "max_result_bytes": "8589934592"}
    monkeypatch.setenv("AIRFLOW_CONN_LLM", json.dumps(fields | {"extra": extra}))
    read = lookup("llm").provider_account(timeout_s=30).answers
    assert read == AnswerLimits(max_answer_bytes=33554432, max_result_bytes=8589934592)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("allow_http", "perhaps"), ("allow_http", 2), ("allow_http", []), ("max_line_bytes", 5),
        ("max_line_bytes", True), ("max_result_bytes", "4 GiB"), ("max_result_bytes", -1), ("max_answer_bytes", 1e9),
        ("project", 7), ("project", "a\nb"), ("organization", {}),
    ],
)  # fmt: skip
def test_an_extra_that_cannot_be_is_named(
    key: str, value: object, lookup: Lookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"conn_type": "generic", "host": "https://llm.example/v1", "password": "sk-key", "extra": {key: value}}
    monkeypatch.setenv("AIRFLOW_CONN_LLM", json.dumps(fields))
    with pytest.raises(ConfigError, match=f"{key} in the extra of connection 'llm' is"):
        lookup("llm").provider_account(timeout_s=30)


def test_an_extra_that_is_a_json_string_is_read_too(lookup: Lookup, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"conn_type": "aws", "login": "id", "password": SECRET, "extra": json.dumps({"region_name": "eu-west-1"})}
    monkeypatch.setenv("AIRFLOW_CONN_STORE", json.dumps(fields))
    assert lookup("store").file_system_options()["client_kwargs"] == {"region_name": "eu-west-1"}


def test_an_undefined_connection_is_named_with_its_variable(lookup: Lookup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_NOWHERE", raising=False)
    with pytest.raises(ConfigError, match="AIRFLOW_CONN_NOWHERE"):
        lookup("nowhere")


def test_extras_that_libpq_does_not_know_are_left_out_in_every_form(
    lookup: Lookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"iam": False, "cursor": "dictcursor", "sslmode": "require"}
    fields = {"conn_type": "postgres", "host": "db", "login": "w", "password": "p", "schema": "s", "extra": extra}
    for definition in (json.dumps(fields), f"postgres://w:p@db/s?{urlencode({'__extra__': json.dumps(extra)})}"):
        monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", definition)
        assert lookup("nightmill_db").database_url() == "postgresql://w:p@db:5432/s?sslmode=require"


@pytest.mark.parametrize(
    "definition",
    [
        "postgres://a:hush/hush@db/x",
        "postgres://a:hush@db:port/x",
        "postgres://a:hush@db:99999/x",
        "postgres://a:hush@[::1/x",
        '{"host": "db", "password": "hush", "extra": [1]}',
        '{"host": "db", "password": "hush", "extra": "null"}',
        '{"host": "db", "password": "hush", "port": [1]}',
        '{"host": "db", "password": "hush"',
    ],
)
def test_what_is_no_connection_is_refused_and_its_password_not_said(
    definition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", definition)
    with pytest.raises(ConfigError, match="AIRFLOW_CONN_NIGHTMILL_DB is not a connection") as refused:
        from_variables("nightmill_db")
    assert refused.value.__cause__ is None
    assert "hush" not in str(refused.value)


def test_an_object_store_of_an_unknown_kind_is_named() -> None:
    with pytest.raises(ConfigError, match=r"NIGHTMILL_OBJECT_STORE names a kind of store .*: bogus\."):
        payload_store(from_variables, {"NIGHTMILL_OBJECT_STORE": "bogus://bucket"})


def test_no_representation_shows_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for conn_id in ("NIGHTMILL_DB", "LLM"):
        fields = {"conn_type": "x", "host": "http://127.0.0.1:1/v1", "login": "writer", "password": "hush-hush"}
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id}", json.dumps(fields))
    environment = connections.environment()
    account = environment.connections.provider("llm", 30)
    assert account.api_key == "hush-hush"
    assert "hush-hush" in environment.ledger_dsn
    for shown in (environment, connections.lookup("llm"), account, environment.connections, environment.payloads):
        assert "hush-hush" not in repr(shown)
        assert "hush-hush" not in str(shown)


@pytest.mark.parametrize(
    ("definition", "host"),
    [
        ({"host": "/cloudsql/My-Project:europe-west1:Db"}, "/cloudsql/My-Project:europe-west1:Db"),
        ("postgres://w:p@%2Fcloudsql%2FMy-Project%3Aeurope-west1%3ADb:5433/s", "/cloudsql/My-Project:europe-west1:Db"),
        ("postgres://w:p@:5433/s?host=%2Fcloudsql%2Fx", "/cloudsql/x"),
        ({"host": "@abstract/x y"}, "@abstract/x y"),
        ({"host": "::1"}, "::1"),
        ({"host": "[2001:db8::7]"}, "2001:db8::7"),
        ("postgres://w:p@[2001:db8::7]:5433/s", "2001:db8::7"),
        ({"host": "fe80::1%eth0"}, "fe80::1%eth0"),
        ({"host": "db1.example,db2.example"}, "db1.example,db2.example"),
    ],
)
def test_any_host_that_libpq_knows_reaches_it_as_it_was_written(
    definition: str | dict[str, str], host: str, lookup: Lookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(definition, dict):
        definition = json.dumps(
            {"conn_type": "postgres", "login": "w", "password": "p", "schema": "s", "port": 5433} | definition
        )
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", definition)
    read = conninfo_to_dict(lookup("nightmill_db").database_url())
    assert read == {"host": host, "port": "5433", "user": "w", "password": "p", "dbname": "s"}


def test_extras_reach_libpq_with_their_blanks_and_without_what_says_nothing(
    lookup: Lookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"options": "-c search_path=a,b -c x.y=1\\ 2", "sslrootcert": "/my certs/ca+1.pem", "keepalives": True}
    fields = {"conn_type": "postgres", "host": "db", "login": "w", "password": "p", "schema": "s"}
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", json.dumps(fields | {"extra": extra | {"sslmode": ""}}))
    read = conninfo_to_dict(lookup("nightmill_db").database_url())
    assert {key: read.get(key) for key in (*extra, "sslmode")} == extra | {"keepalives": "1", "sslmode": None}


def test_the_database_url_names_the_database_that_the_connection_names(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = AirflowConnection("x", "host", None, "my db", "me", "pw")
    assert urlsplit(connection.database_url()).path == "/my%20db"

"""What goes wrong when rows, folders or services are bad at run time: each ends in a message with its remedy, and with
nothing published and nothing lost."""

from __future__ import annotations

import logging

import psycopg
import pytest
from support.pipeline import Pipeline
from support.steps import run_unchecked

from dev.stack.postgres import Server
from nightmill.domain.errors import BrokenJobFolder, NightmillError, SourceError, Transient
from nightmill.domain.states import BatchState

COLUMNS = "select id, version, tenant, body from documents"


def refused(pipeline: Pipeline, kind: type[NightmillError] = SourceError) -> str:
    """What a freeze says that must fail; checks that readers and ledger are as before."""
    before = pipeline.sql("select batch_id, source_id, title from results.notes order by source_id")
    items = pipeline.sql("select count(*) from nightmill.item")
    with pytest.raises(kind) as seen:
        pipeline.freeze("bad")
    assert pipeline.sql("select batch_id, source_id, title from results.notes order by source_id") == before
    assert pipeline.sql("select count(*) from nightmill.item") == items
    return str(seen.value)


def reason(pipeline: Pipeline) -> tuple[str, str]:
    """State of the newest batch and why."""
    (row,) = pipeline.sql("select state, state_reason from nightmill.batch order by batch_id desc limit 1")
    return row[0], row[1]


def odd(pipeline: Pipeline, **columns: str) -> None:
    """A source of one row, some of whose columns are JSON: the only way to NUL and half surrogate pairs in Postgres."""
    values = {name: f"json '{text}' as {name}" for name, text in columns.items()}
    plain = {"id": "'odd' as id", "version": "'1' as version", "tenant": "'acme' as tenant", "body": "'text' as body"}
    query = "select " + ", ".join((plain | values).values())
    pipeline.edit("job.yaml", f"query: {COLUMNS}", "query: |\n    " + query.replace("%", "%%"))


def test_a_failed_freeze_leaves_its_reason_with_the_batch_and_a_good_one_takes_it_away(pipeline: Pipeline) -> None:
    pipeline.sql("insert into documents values (null, '1', 'acme', 'Nameless.')")
    said = refused(pipeline)
    assert reason(pipeline) == ("CREATED", said)
    pipeline.sql("delete from documents where id is null")
    assert pipeline.freeze("bad", first_try=False).state is BatchState.PLANNING
    assert reason(pipeline) == ("PLANNING", "manifest frozen")


def test_the_reason_of_an_unforeseen_fault_is_its_kind_without_its_text(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def quoting(*_: object) -> None:
        raise ValueError("CANARY private words")

    monkeypatch.setattr("nightmill.storage.items.index", quoting)
    with pytest.raises(ValueError, match="CANARY"):
        pipeline.freeze()
    assert reason(pipeline) == ("CREATED", "freezing ended with ValueError")


def test_a_nul_character_in_a_text_goes_through(pipeline: Pipeline) -> None:
    odd(pipeline, body=r'"a\u0000b"')
    report = run_unchecked(pipeline)
    assert report.counts == {"accepted": 1}
    [(title,)] = pipeline.sql("select title from results.notes")
    assert title.startswith("Summarise this document.")


@pytest.mark.parametrize("body", [r'"private \ud800"', r'{"a": ["private \ud800"]}'])
def test_half_a_surrogate_pair_in_a_text_is_refused_with_column_and_id(pipeline: Pipeline, body: str) -> None:
    odd(pipeline, body=body)
    said = refused(pipeline)
    assert "The column 'body' of source id 'odd' cannot be written as UTF-8" in said
    assert "replace lone surrogates by U+FFFD" in said
    assert "private" not in said
    assert reason(pipeline) == ("CREATED", said)


@pytest.mark.parametrize(
    ("levels", "named"), [(300, "The column 'body' of source id 'odd' is"), (3000, "A JSON column of the source is")]
)
def test_json_that_is_nested_too_deeply_is_refused_with_a_way_round(
    pipeline: Pipeline, levels: int, named: str
) -> None:
    odd(pipeline, body="[" * levels + '"private"' + "]" * levels)
    said = refused(pipeline)
    assert f"{named} nested too deeply" in said
    assert "<column> #>> '{outer,inner}' as <name>" in said
    assert "private" not in said


@pytest.mark.parametrize("text", [r'"a\u0000b"', r'"a\ud800b"'])
def test_an_id_that_postgres_cannot_store_is_refused(pipeline: Pipeline, text: str) -> None:
    odd(pipeline, id=text)
    said = refused(pipeline)
    assert "holds a NUL character or half a surrogate pair" in said
    assert "leave such rows out" in said


def test_an_id_that_no_index_can_hold_is_refused(pipeline: Pipeline) -> None:
    pipeline.sql(
        "insert into documents select string_agg(md5(n::text), ''), '1', 'acme', 'text' from generate_series(1, 300) n"
    )
    said = refused(pipeline)
    assert "an id of more than 2,704 bytes" in said
    assert "md5(<column>) as <column>" in said


def test_a_text_column_of_bytes_is_refused_with_the_way_to_decode_it(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", COLUMNS, COLUMNS.replace("body", "convert_to(body, 'UTF8') as body"))
    assert "holds bytes, not text. Remedy: Decode it in the source query: convert_from(body, 'UTF8')" in refused(
        pipeline
    )


def test_a_source_without_an_encoding_is_read_as_utf8_and_other_bytes_are_refused(
    pipeline: Pipeline, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(pipeline.admin_dsn, autocommit=True) as conn:
        conn.execute("create database bytes_source encoding 'SQL_ASCII' template template0 locale 'C'")
    dsn = postgres_server.dsn("bytes_source")
    monkeypatch.setattr("support.pipeline.TestConnections.database", lambda *_: dsn)
    try:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("create table documents (id text, version text, tenant text, body text)")
            conn.execute(rb"insert into documents values ('u', '1', 'acme', E'caf\303\251 \\134 bar')")
        batch = pipeline.freeze()
        assert pipeline.sql("select source_id, tenant from nightmill.item") == [("u", "acme")]
        assert batch.item_count == 1
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(rb"update documents set version = '2', body = E'caf\351 \\134 bar'")
        said = refused(pipeline)
        assert "text that is not UTF-8" in said
        mended = said.split("written in: ")[1].rstrip(".")
        pipeline.edit("job.yaml", "tenant, body from", "tenant, " + mended.replace("<column>", "body") + " from")
        assert pipeline.freeze("bad", first_try=False).item_count == 1
        [(content,)] = pipeline.sql("select content_hash from nightmill.item where source_version = '2'")
        [(utf8,)] = pipeline.sql("select content_hash from nightmill.item where source_version = '1'")
        assert content == utf8
    finally:
        postgres_server.drop_database("bytes_source")


def test_an_unreachable_ledger_is_said_with_its_connection_and_can_be_tried_again(pipeline: Pipeline) -> None:
    pipeline.writer_dsn = pipeline.writer_dsn.rsplit("@", 1)[0] + "@127.0.0.1:1/gone"
    with pytest.raises(Transient, match=r"ledger database cannot be reached.*Check the connection nightmill_db"):
        pipeline.freeze()


def test_an_unreachable_source_is_said_with_its_connection_and_can_be_tried_again(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_unchecked(pipeline)
    dsn = pipeline.admin_dsn.rsplit("@", 1)[0] + "@127.0.0.1:1/gone"
    with monkeypatch.context() as patch:
        patch.setattr("support.pipeline.TestConnections.database", lambda *_: dsn)
        said = refused(pipeline, Transient)
    assert "The source database behind 'source' cannot be reached" in said
    assert "Check the Airflow connection source" in said
    assert reason(pipeline) == ("CREATED", said)
    assert pipeline.freeze("bad", first_try=False).state is BatchState.PLANNING


@pytest.mark.parametrize(
    ("file", "old", "new", "said", "remedy"),
    [
        ("prompt.md", "{{ body }}", "{{ boddy }}", "returns no column 'boddy' (did you mean 'body'?)", "variables in"),
        ("prompt.md", "{{ body }}", "{{ body.pages.first }}", "'doc-01': prompt.md:3: {{ body.pages", "default"),
        ("job.yaml", "tenant: tenant}", "tenant: tennant}", "no column 'tennant' (did you mean 'tenant'?)", "correct"),
        ("job.yaml", "from documents", "from document", 'relation "document" does not exist', "in psql"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_source_is_named(
    pipeline: Pipeline, file: str, old: str, new: str, said: str, remedy: str
) -> None:
    pipeline.edit(file, old, new)
    message = refused(pipeline)
    assert said in message
    assert remedy in message.split("Remedy: ")[1]
    assert reason(pipeline) == ("CREATED", message)


def test_an_output_module_that_does_not_import_stops_the_run_before_there_is_a_batch(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    pipeline.write("output.py", "import no_such_module\n")
    said = refused(pipeline, BrokenJobFolder)
    assert "output.py:1" in said
    assert "no_such_module" in said
    assert reason(pipeline) == ("PUBLISHED", "published")


def test_an_empty_source_is_said_with_the_check_that_would_refuse_it(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline.sql("delete from documents")
    with caplog.at_level(logging.WARNING, "nightmill"):
        pipeline.freeze()
    [said] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "the source query returned no rows" in said
    assert "ExpectTableRowCountToBeBetween" in said

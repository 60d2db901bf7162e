"""A job's table and view: made and extended in place, never changed under its readers."""

from __future__ import annotations

import pytest
from psycopg import errors
from support.ledger import OUTPUT, Ledger, apply, definition

from nightmill.domain.errors import ConfigError
from nightmill.storage import views

WITH_LANGUAGE = OUTPUT + "    language: str | None = None\n    scores: list[float] = []\n"


def test_a_new_job_is_created_and_then_unchanged(ledger: Ledger) -> None:
    job = definition("other", "other_view")
    assert apply(ledger.admin_dsn, job) == "created"
    assert apply(ledger.admin_dsn, job) == "unchanged"
    owners = ledger.sql("select tableowner from pg_tables where tablename = 'rows_other_view'")
    assert owners == [("nightmill_owner",)]


def test_a_new_field_keeps_the_view_its_grants_and_its_dependants(ledger: Ledger) -> None:
    batch = ledger.validating(5)
    ledger.publish(batch)
    ledger.sql("create view public.dependent as select source_id, pages from results.notes")
    before = ledger.sql("select 'results.notes'::regclass::oid, relacl::text from pg_class where relname = 'notes'")

    assert apply(ledger.admin_dsn, definition(output=WITH_LANGUAGE)) == "extended"

    assert before == ledger.sql(
        "select 'results.notes'::regclass::oid, relacl::text from pg_class where relname = 'notes'"
    )
    assert ledger.sql("select count(*) from public.dependent") == [(5,)]
    with ledger.reader() as conn:
        assert conn.execute("select title, language, scores from results.notes limit 1").fetchone() == (
            f"batch {batch.batch_id}",
            None,
            None,
        )
    assert [(column.name, column.sql_type) for column in _columns(ledger)] == [
        ("title", "text"),
        ("pages", "bigint"),
        ("language", "text"),
        ("scores", "double precision[]"),
    ]


def test_a_batch_after_an_extension_gets_the_new_column(ledger: Ledger) -> None:
    ledger.validating(3)
    apply(ledger.admin_dsn, definition(output=WITH_LANGUAGE))
    batch = ledger.validating(4)
    assert ledger.sql(f"select count(*) from nightmill.rows_{batch.batch_id} where language is null") == [(4,)]


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (OUTPUT.replace("pages: int", "pages: str"), "'pages' changed from bigint to text"),
        (OUTPUT.replace("    pages: int\n", ""), "'pages' of view notes is gone"),
    ],
)
def test_an_incompatible_schema_is_refused_by_apply_and_before_a_run(ledger: Ledger, output: str, said: str) -> None:
    job = definition(output=output)
    with pytest.raises(ConfigError, match=said):
        apply(ledger.admin_dsn, job)
    with ledger.writer() as conn, pytest.raises(ConfigError, match=said):
        views.refuse_unapplied(conn, job)
    assert [column.name for column in _columns(ledger)] == ["title", "pages"]
    assert ledger.sql("select columns::text from nightmill.view_definition") == [
        ('[["title", "text"], ["pages", "bigint"]]',)
    ]


def test_a_run_before_apply_is_told_to_apply(ledger: Ledger) -> None:
    with ledger.writer() as conn:
        views.refuse_unapplied(conn, ledger.job)
        with pytest.raises(ConfigError, match=r"not set up for language, scores.*nightmill apply"):
            views.refuse_unapplied(conn, definition(output=WITH_LANGUAGE))
        with pytest.raises(ConfigError, match="not set up for title, pages"):
            views.refuse_unapplied(conn, definition("fresh", "fresh"))


def test_the_view_of_another_job_cannot_be_taken(ledger: Ledger) -> None:
    with pytest.raises(ConfigError, match="'notes' belongs to the job notes"):
        apply(ledger.admin_dsn, definition("thief", "notes"))
    assert ledger.sql("select job from nightmill.view_definition where view_name = 'notes'") == [("notes",)]


def test_the_writer_cannot_apply(ledger: Ledger) -> None:
    with ledger.writer() as conn, pytest.raises(errors.InsufficientPrivilege):
        views.apply(conn, definition("other", "other_view"))


def _columns(ledger: Ledger) -> list[views.Column]:
    with ledger.writer() as conn:
        return views.existing_columns(conn, "notes")

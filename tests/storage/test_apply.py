"""A job's table and view: made and extended in place, never changed under its readers."""

from __future__ import annotations

import re

import psycopg
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


@pytest.mark.parametrize("field", ["language: str | None = None", 'language: str = "en"'])
def test_after_a_revert_of_a_new_field_runs_go_on_and_its_column_is_null(ledger: Ledger, field: str) -> None:
    apply(ledger.admin_dsn, definition(output=f"{OUTPUT}    {field}\n"))
    assert apply(ledger.admin_dsn, definition()) == "unchanged"
    with ledger.writer() as conn:
        views.refuse_unapplied(conn, definition())
    batch = ledger.validating(4)  # under the contract of before
    ledger.publish(batch)
    with ledger.reader() as conn:
        assert conn.execute("select distinct language from results.notes").fetchall() == [(None,)]
    assert apply(ledger.admin_dsn, definition(output=f"{OUTPUT}    {field}\n")) == "unchanged"  # and forth again


def test_a_field_that_could_be_null_from_the_beginning_may_go_and_one_of_another_type_may_not(ledger: Ledger) -> None:
    with_note = definition("other", "other_view", output=OUTPUT + "    note: str | None = None\n")
    apply(ledger.admin_dsn, with_note)
    assert apply(ledger.admin_dsn, definition("other", "other_view")) == "unchanged"
    with pytest.raises(ConfigError, match="'note' changed from text to bigint"):
        apply(ledger.admin_dsn, definition("other", "other_view", output=OUTPUT + "    note: int | None = None\n"))


def test_what_output_py_says_of_a_field_is_its_columns_comment(ledger: Ledger) -> None:
    described = OUTPUT.replace("import BaseModel, ConfigDict", "import BaseModel, ConfigDict, Field").replace(
        "pages: int", "pages: int = Field(description=\"How many pages;\\n  'about' counts.\")"
    )
    ledger.sql("comment on column results.notes.title is 'ours'")
    assert apply(ledger.admin_dsn, definition(output=described)) == "described"
    assert apply(ledger.admin_dsn, definition(output=described)) == "unchanged"
    comments = "select attname, col_description(attrelid, attnum) from pg_attribute "
    comments += "where attrelid = 'results.notes'::regclass and attname in ('pages', 'title') order by 1"
    assert ledger.sql(comments) == [("pages", "How many pages; 'about' counts."), ("title", "ours")]
    created = definition("other", "other_view", output=described)
    assert apply(ledger.admin_dsn, created) == "created"
    assert ledger.sql("select col_description('results.other_view'::regclass, attnum) from pg_attribute "
                      "where attrelid = 'results.other_view'::regclass and attname = 'pages'") == [
        ("How many pages; 'about' counts.",)
    ]  # fmt: skip


def test_a_view_whose_job_has_no_folder_is_told_with_what_it_shows_and_a_rename_can_be_followed(
    ledger: Ledger,
) -> None:
    batch = ledger.validating(3)
    ledger.publish(batch)
    with ledger.writer() as conn:
        assert views.orphans(conn, {"notes"}) == []
        [orphan] = views.orphans(conn, {"renamed"})
    assert re.fullmatch(
        rf"results.notes belongs to job notes, which has no folder; it goes on showing batch {batch.batch_id}, as "
        r"since \d{4}-\d\d-\d\d",
        str(orphan),
    )
    renamed = definition("renamed", "notes")
    with psycopg.connect(ledger.admin_dsn) as conn, pytest.raises(ConfigError, match="has no folder") as refused:
        views.apply(conn, renamed, {"renamed"})
    (remedy,) = re.findall(r"(update nightmill.view_definition .*?);", refused.value.remedy)
    ledger.sql(f"set role nightmill_owner; {remedy}")
    assert apply(ledger.admin_dsn, renamed) == "unchanged"
    # Where nobody reads it, the other remedy ends the telling.
    with ledger.writer() as conn:
        [orphan] = views.orphans(conn, set())
    (drop,) = re.findall(r"(drop view .*?);", views.renamed(orphan.view_name, orphan.job))
    ledger.sql(f"set role nightmill_owner; {drop}")
    with ledger.writer() as conn:
        assert views.orphans(conn, set()) == []


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

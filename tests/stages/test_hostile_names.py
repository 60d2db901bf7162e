"""A neighbour who may create functions in the ledger's database, in a schema that every login looks into first."""

from __future__ import annotations

from datetime import timedelta

from support.pipeline import Pipeline
from support.steps import run_unchecked

from nightmill.domain.maintenance import Sweep, refuse_failed
from nightmill.operations import apply
from nightmill.storage.migrate import init_db
from nightmill.upkeep import maintenance

# What our own statements call without a schema.
SHADOWED = (
    "pg_advisory_xact_lock(int, int) returns void",
    "to_regclass(text) returns regclass",
    "quote_ident(text) returns text",
    "format_type(oid, int) returns text",
    "clock_timestamp() returns timestamptz",
    "set_config(text, text, boolean) returns text",
    "hashtext(text) returns int",
    "int8range(bigint, bigint, text) returns int8range",
    "same(text, text) returns boolean",
)


def test_functions_and_operators_of_a_neighbour_are_never_called_by_our_sessions(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    pipeline.sql("create schema hostile")
    for one in SHADOWED:
        pipeline.sql(
            f"create function hostile.{one} language plpgsql as "
            "$$ begin raise exception 'called with the rights of %', current_user; end $$"
        )
    pipeline.sql("create operator hostile.= (leftarg = text, rightarg = text, function = hostile.same)")
    pipeline.sql("grant usage on schema hostile to public")
    database = pipeline.admin_dsn.rsplit("/", 1)[1]
    pipeline.sql(f"alter database {database} set search_path = hostile, public, pg_catalog")

    pipeline.edit("output.py", "    pages: int", "    pages: int\n    language: str | None = None")
    assert init_db(pipeline.admin_dsn) == []
    assert [one.outcome for one in apply.run(pipeline.admin_dsn, pipeline.folder.parent)] == ["extended"]
    run_unchecked(pipeline, "run-2")
    pipeline.clock_offset += timedelta(days=200)
    for sweep in Sweep:
        refuse_failed(maintenance.run(pipeline.env, {"notes": pipeline.live}, pipeline.admin_dsn, sweep, dry_run=False))
    pipeline.clock_offset = timedelta()
    assert run_unchecked(pipeline, "run-3").counts == {"reused": 20}

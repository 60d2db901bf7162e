"""Gaps that a job allows: what readers see in their place, and what is recorded with the batch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from support.pipeline import Pipeline
from support.replays import replayed
from support.steps import batch_of, publish_unchecked, reconciled, run_unchecked, set_faults

from nightmill.domain.errors import Blocked, SourceError, Terminal
from nightmill.domain.states import BatchState
from nightmill.gates import checks, driver
from nightmill.operations import status
from nightmill.stages import publish, reconcile, report
from nightmill.storage import comparison, gaps
from nightmill.storage.batches import Batch

GAPS = "select source_id, tenant, title, pages, result_id is null, gap_reason from results.notes where gap_reason > ''"
ROWS = (
    "select part_id, batch_id, ordinal, source_id, result_id, title, gap_reason from nightmill.rows_notes "
    "where part_id = {} order by ordinal"
)
DAYS = [datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2, 3)]


def failing(pipeline: Pipeline, *endings: str) -> None:
    """Refuse the items with these ordinals for good."""
    faults = [{"match": f"-{end}$", "status": 400, "code": f"bad_{end}", "times": None} for end in endings]
    set_faults(pipeline.simulator, line_error=faults)


def allow(pipeline: Pipeline, rules: str, min_completion: float = 0.8) -> None:
    """Write the job's contract for gaps."""
    pipeline.edit("job.yaml", "publish:", f"gaps:\n  min_completion: {min_completion}\n  rules: {rules}\npublish:")


def judged(pipeline: Pipeline, run_id: str = "run-1", **changes: Any) -> Batch:
    """A batch whose items have all settled."""
    batch = pipeline.freeze(run_id, **changes)
    pipeline.drive(pipeline.plan(batch))
    return batch


def facts_of(pipeline: Pipeline, batch_id: int) -> dict[str, Any]:
    with pipeline.env.ledger() as conn:
        found = gaps.facts(conn, batch_id)
    assert found is not None
    return found


def test_a_gap_is_a_null_row_or_no_row_as_its_rule_says(pipeline: Pipeline) -> None:
    failing(pipeline, "4", "15")
    allow(pipeline, "[{codes: [bad_4], show: null_row, searchable: no}, {fill: never}]")
    made = run_unchecked(pipeline)
    assert made.batch.state is BatchState.PUBLISHED
    assert pipeline.sql(GAPS) == [("doc-05", "acme", None, None, True, "dead_lettered: bad_4")]
    assert pipeline.sql("select count(*), count(result_id), count(title) from results.notes") == [(19, 18, 18)]
    assert pipeline.sql("select source_id from results.notes where source_id = 'doc-16'") == []
    readers = facts_of(pipeline, made.batch.batch_id)["readers"]
    assert readers == {"published": True, "null_rows": 1, "previous": 0, "absent": 1, "searchable": False}


def test_the_gap_reason_is_the_last_column_of_the_view(pipeline: Pipeline) -> None:
    columns = pipeline.sql(
        "select attname from pg_attribute where attrelid = 'results.notes'::regclass and attnum > 0 order by attnum"
    )
    assert columns[-1] == ("gap_reason",)


def test_a_gap_is_the_row_that_was_shown_with_its_own_provenance(pipeline: Pipeline) -> None:
    first = run_unchecked(pipeline)
    pipeline.edit("prompt.md", "Summarise", "Describe")
    pipeline.sql("delete from documents where id = 'doc-16'")
    pipeline.documents([("doc-99", "1", "umbrella", "A new one.")])
    failing(pipeline, "4", "19")
    allow(pipeline, "[{show: previous}]")
    before = pipeline.sql("select result_id, model, prompt_version, answered_at, title from results.notes "
                          "where source_id = 'doc-05'")  # fmt: skip
    second = run_unchecked(pipeline, "run-2")
    assert (
        pipeline.sql(
            "select result_id, model, prompt_version, answered_at, title from results.notes where source_id = 'doc-05'"
        )
        == before
    )
    assert pipeline.sql("select source_id, batch_id, result_id is null, gap_reason from results.notes "
                        "where gap_reason > '' order by 1") == [
        ("doc-05", second.batch.batch_id, False, "previous: dead_lettered: bad_4"),
        ("doc-99", second.batch.batch_id, True, "dead_lettered: bad_19"),
    ]  # fmt: skip
    third = run_unchecked(pipeline, "run-3")
    assert (first.batch.batch_id, third.counts["reused"]) == (1, 18)
    assert pipeline.sql("select result_id from results.notes where source_id = 'doc-05'") == [before[0][:1]]


def test_a_previous_row_of_another_tenant_is_not_shown(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    pipeline.sql("update documents set tenant = 'umbrella', version = '2' where id = 'doc-01'")
    failing(pipeline, "8")
    allow(pipeline, "[{show: previous}]")
    moved = run_unchecked(pipeline, "run-2")
    assert moved.counts == {"dead_lettered": 1, "reused": 19}
    [(source_id, tenant, title, _, without_result, _)] = pipeline.sql(GAPS)
    assert (source_id, tenant, title, without_result) == ("doc-01", "umbrella", None, True)


def test_in_by_interval_a_previous_row_is_one_of_the_same_interval(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "view: notes", "view: notes, mode: by_interval")
    pipeline.apply()
    nights = [{"data_interval_start": DAYS[n], "data_interval_end": DAYS[n + 1]} for n in range(2)]
    run_unchecked(pipeline, "night-1", **nights[0])
    pipeline.edit("prompt.md", "Summarise", "Describe")
    failing(pipeline, "4")
    allow(pipeline, "[{show: previous}]")
    seen = "select data_interval_start, title is null, gap_reason from results.notes where source_id = 'doc-05' and {}"
    of_interval = (
        "select interval_start, gaps, searchable, gap_facts -> 'readers' ->> 'previous' "
        "from results.published_intervals where view_name = 'notes' and batch_id = {}"
    )
    again = run_unchecked(pipeline, "night-1-again", **nights[0]).batch.batch_id
    assert pipeline.sql(seen.format(f"batch_id = {again}")) == [(DAYS[0], False, "previous: dead_lettered: bad_4")]
    assert pipeline.sql(of_interval.format(again)) == [(DAYS[0], 1, True, "1")]
    second = run_unchecked(pipeline, "night-2", **nights[1]).batch.batch_id
    assert pipeline.sql(seen.format(f"batch_id = {second}")) == [(DAYS[1], True, "dead_lettered: bad_4")]
    assert pipeline.sql(of_interval.format(second)) == [(DAYS[1], 1, True, "0")]
    assert pipeline.sql("select gap_facts, searchable from results.published_views") == [(None, True)]


def test_reconcile_cleared_writes_the_same_rows_and_other_rules_write_others(pipeline: Pipeline) -> None:
    failing(pipeline, "4", "15")
    allow(pipeline, "[{show: null_row}]")
    batch = judged(pipeline)
    reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
    once = pipeline.sql(ROWS.format(batch.batch_id))
    reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
    assert pipeline.sql(ROWS.format(batch.batch_id)) == once
    assert len(once) == 20
    pipeline.edit("job.yaml", "show: null_row", "show: absent")
    reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
    assert len(pipeline.sql(ROWS.format(batch.batch_id))) == 18
    publish_unchecked(pipeline, batch)
    assert pipeline.sql("select count(*) from results.notes") == [(18,)]


def test_a_required_item_is_never_missing(pipeline: Pipeline) -> None:
    pipeline.sql("alter table documents add must_have boolean")
    pipeline.sql("update documents set must_have = true where id = 'doc-05'")
    pipeline.edit("job.yaml", "tenant, body from", "tenant, body, must_have from")
    pipeline.edit("job.yaml", "tenant: tenant}", "tenant: tenant, required: must_have}")
    allow(pipeline, "[{show: null_row}]", min_completion=0)
    failing(pipeline, "4", "15")
    with pytest.raises(Terminal, match=r"1 gap where source.columns.required is true"):
        run_unchecked(pipeline)
    assert pipeline.sql("select ordinal from nightmill.item where required") == [(4,)]
    assert pipeline.sql("select count(*) from nightmill.rows_notes where gap_reason > ''") == [(0,)]
    assert pipeline.sql("select count(*) from results.notes") == [(0,)]
    failing(pipeline, "15")
    pipeline.sql("update documents set version = '2' where id = 'doc-05'")
    run_unchecked(pipeline, "run-2")
    assert [row[0] for row in pipeline.sql(GAPS)] == ["doc-16"]


def test_a_required_column_that_is_no_boolean_is_refused(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "tenant: tenant}", "tenant: tenant, required: version}")
    with pytest.raises(SourceError, match=r"'version' of the source is no boolean.*version::boolean as version"):
        pipeline.freeze()


def test_counts_and_ranges_leave_gaps_out(pipeline: Pipeline) -> None:
    pipeline.write(
        "checks.yaml",
        "expectations:\n- {type: ExpectColumnValuesToNotBeNull, column: title}\n"
        "- {type: ExpectTableRowCountToEqual, value: 19}\n",
    )
    pipeline.sql("create table known as select id as source_id, 'x' as title from documents")
    pipeline.edit("job.yaml", "publish:", "gold: {query: 'select * from known', fields: [title]}\npublish:")
    failing(pipeline, "4")
    allow(pipeline, "[{show: null_row}]")
    batch = judged(pipeline)
    reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
    verdict = driver.run(pipeline.env, pipeline.live, batch.batch_id, checks.GATE)
    assert verdict is not None
    assert [one["observed"] for one in verdict.details["checks"] if "observed" in one] == ["19", "19"]
    assert [(one.field, one.known) for one in report.build(pipeline.env, batch.batch_id).accuracy] == [("title", 19)]


def test_what_was_shown_as_previous_must_still_be_what_readers_see(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    pipeline.edit("prompt.md", "Summarise", "Describe")
    failing(pipeline, "4")
    allow(pipeline, "[{show: previous}]")
    batch = judged(pipeline, "run-2")
    reconciled(pipeline, batch)
    # A rollback to nothing, as it were.
    pipeline.sql("delete from nightmill.published")
    with pytest.raises(Blocked, match=r"as the rows of batch 1, and results\.notes shows no batch in its place now"):
        publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
    reconciled(pipeline, batch)
    publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
    assert pipeline.sql(GAPS) == [("doc-05", "acme", None, None, True, "dead_lettered: bad_4")]


@pytest.mark.parametrize("allowed", [True, False])
def test_a_batch_with_gaps_carries_four_facts_and_report_and_status_tell_them(
    pipeline: Pipeline, allowed: bool
) -> None:
    failing(pipeline, "4", "15")
    allow(pipeline, "[{tenants: [acme, umbrella], show: null_row, fill: person by 17:00}]", 0.9 if allowed else 0.95)
    if allowed:
        run_unchecked(pipeline)
    else:
        with pytest.raises(Terminal, match=r"completion 0.9000 is below gaps.min_completion 0.9500; gaps by code"):
            run_unchecked(pipeline)
    state = batch_of(pipeline, 1).state
    assert state is (BatchState.PUBLISHED if allowed else BatchState.PARTIAL_FAILED)
    found = facts_of(pipeline, 1)
    assert found["accepted"] == {"items": 18, "planned": 20, "excluded": 0, "completion": 0.9}
    assert [(one["gap"], one["tenant"], one["items"]) for one in found["gaps"]] == [
        ("dead_lettered/input/bad_15", "umbrella", 1), ("dead_lettered/input/bad_4", "acme", 1),
    ]  # fmt: skip
    assert [(one["fill"], one["items"]) for one in found["fill"]] == [("person by 17:00", 2)]
    assert found["readers"]["published"] is allowed
    assert len(pipeline.sql("select 1 from nightmill.rows_notes where gap_reason > ''")) == (2 if allowed else 0)
    [standing] = status.look(pipeline.env, 1)
    for text in (report.render(report.build(pipeline.env, 1)), "\n".join(status.block(standing))):
        assert "accepted: 18 of 20 (90.00%)" in text
        assert "to list them: python -m nightmill dead-letters --batch 1" in text
        assert "readers: 2 null rows" in text if allowed else "readers: the view stays where it was" in text
    [(details,)] = pipeline.sql("select details from nightmill.gate_verdict where gate = 'completion'")
    assert details["facts"] == found
    assert details["contract"]["rules"][0]["fill"] == "person by 17:00"


def test_readers_are_told_what_each_view_shows_with_its_gaps(pipeline: Pipeline) -> None:
    failing(pipeline, "4")
    allow(pipeline, "[{show: null_row, searchable: no}]")
    made = run_unchecked(pipeline)
    assert made.shown is not None
    assert pipeline.sql(
        "select view_name, batch_id, publish_seq, counts ->> 'accepted', gaps, "
        "gap_facts -> 'gaps' -> 0 ->> 'code', searchable from results.published_views"
    ) == [("notes", 1, made.shown.publish_seq, "19", 1, "bad_4", False)]
    for view in ("published_views", "published_intervals"):
        granted = f"select has_table_privilege('nightmill_reader', 'results.{view}', 'select')"
        assert pipeline.sql(granted) == [(True,)]
    assert len(pipeline.sql("select * from results.published_intervals")) == 1


def test_a_replay_of_a_batch_with_gaps_fills_them(pipeline: Pipeline) -> None:
    failing(pipeline, "4")
    allow(pipeline, "[{show: null_row}]")
    run_unchecked(pipeline)
    set_faults(pipeline.simulator)
    assert replayed(pipeline, 1).counts == {"accepted": 1, "reused": 19}
    assert pipeline.sql("select count(*), count(title), count(gap_reason) from results.notes") == [(20, 20, 0)]


def test_compare_leaves_gaps_out_on_both_sides(pipeline: Pipeline) -> None:
    failing(pipeline, "4", "15")
    allow(pipeline, "[{codes: [bad_4], show: null_row}, {show: absent}]")
    run_unchecked(pipeline)
    pipeline.edit("job.yaml", "show: absent", "show: null_row")
    pipeline.edit("prompt.md", "Summarise", "Describe")
    batch = judged(pipeline, "run-2")
    reconciled(pipeline, batch)
    with pipeline.env.ledger() as conn:
        sides = comparison.of_view(conn, batch_of(pipeline, batch.batch_id), 1)
        found = list(comparison.rows(conn, sides, []))
    assert sum(one.count for one in found if one.is_new) == 18
    assert sum(one.count for one in found if one.is_old) == 18


def test_only_what_stands_in_for_gaps_is_written_while_a_batch_is_judged(pipeline: Pipeline) -> None:
    failing(pipeline, "4")
    allow(pipeline, "[{show: null_row}]")
    batch = judged(pipeline)
    row = (
        "insert into nightmill.rows_notes (part_id, batch_id, ordinal, source_id, gap_reason) values (1, 1, 4, 'x', {})"
    )
    refused = "nothing can be settled in it"
    with pytest.raises(psycopg.DatabaseError, match=refused) as running, pipeline.env.ledger() as conn:
        conn.execute(row.format("'a gap'"))
    assert running.value.sqlstate == "NM004"
    with pytest.raises(psycopg.DatabaseError, match="its rows stay"), pipeline.env.ledger() as conn:
        conn.execute("select nightmill.drop_gap_rows(1)")
    reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
    with pytest.raises(psycopg.DatabaseError, match=refused), pipeline.env.ledger() as conn:
        conn.execute(row.format("null"))
    with pipeline.env.ledger() as conn:
        conn.execute(row.format("'a gap'"))
        conn.rollback()
    publish_unchecked(pipeline, batch)
    for statement in (row.format("'a gap'"), "select nightmill.drop_gap_rows(1)"):
        with pytest.raises(psycopg.DatabaseError), pipeline.env.ledger() as conn:
            conn.execute(statement)

"""reconcile, the gates, publish and report."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise

import pytest
from support.pipeline import OUTPUT, Pipeline
from support.steps import batch_of, publish_unchecked, reconciled, run_unchecked, set_faults

from nightmill.domain.errors import Blocked, Terminal
from nightmill.domain.states import BatchState
from nightmill.domain.wording import aligned
from nightmill.gates import checks, compare, driver, registry
from nightmill.gates.port import Passed
from nightmill.operations.status import look
from nightmill.stages import publish, reconcile, report

SHOWN = "select distinct batch_id from results.notes"


def test_unsettled_items_fail_reconcile_with_their_shards_named(pipeline: Pipeline) -> None:
    batch = pipeline.freeze()
    first, second = pipeline.plan(batch)
    pipeline.drive([first])
    with pytest.raises(Terminal, match=rf"open shards: {second}\.") as caught:
        reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
    assert "Clear run_shard of these shards" in caught.value.remedy
    assert batch_of(pipeline, batch.batch_id).state is BatchState.RUNNING


def test_rows_are_indexed_by_source_id_when_all_of_them_are_there(pipeline: Pipeline) -> None:
    batch = pipeline.freeze()
    indexes = f"select indexdef from pg_indexes where tablename = 'rows_{batch.batch_id}'"
    pipeline.drive(pipeline.plan(batch))
    assert pipeline.sql(indexes) == []
    for _ in range(2):  # clearing makes no second one
        reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
        [(definition,)] = pipeline.sql(indexes)
        assert definition.startswith("CREATE UNIQUE INDEX")
        assert definition.endswith("(source_id)")


def test_gaps_beyond_the_limit_end_the_batch_and_leave_the_view_where_it_was(pipeline: Pipeline) -> None:
    first = run_unchecked(pipeline)
    pipeline.edit("prompt.md", "Summarise", "Describe")
    set_faults(pipeline.simulator, line_error=[{"match": "-4$", "status": 400, "code": "bad", "times": None}])
    with pytest.raises(
        Terminal, match=r"1 gap, and job.yaml allows none .*; gaps by code: .'dead_lettered/input/bad': 1"
    ):
        run_unchecked(pipeline, "run-2")
    [(batch_id,)] = pipeline.sql("select max(batch_id) from nightmill.batch")
    failed = batch_of(pipeline, batch_id)
    assert (failed.state, failed.counts) == (BatchState.PARTIAL_FAILED, {"accepted": 19, "dead_lettered": 1})
    assert pipeline.sql(SHOWN) == [(first.batch.batch_id,)]
    # Later tasks, cleared one by one, open nothing and are red.
    with pytest.raises(Terminal, match=r"is PARTIAL_FAILED .*nothing was published"):
        reconcile.run(pipeline.env, pipeline.live, batch_id)
    with pytest.raises(Terminal, match="nothing was published"):
        publish.run(pipeline.env, pipeline.live, batch_id, "tester")
    with pytest.raises(Terminal, match=r"nothing was published\. Remedy: Trigger a new run"):
        report.run(pipeline.env, batch_id)
    assert pipeline.sql(SHOWN) == [(first.batch.batch_id,)]


def test_the_completion_limit_is_read_live_and_recorded_with_its_verdict(pipeline: Pipeline) -> None:
    set_faults(pipeline.simulator, line_error=[{"match": "-4$", "status": 400, "code": "bad", "times": None}])
    batch = pipeline.freeze()
    pipeline.drive(pipeline.plan(batch))
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0.95}\npublish:")
    made = publish_unchecked(pipeline, batch)
    assert made.shown is not None
    assert (made.batch.state, made.shown.gaps) == (BatchState.PUBLISHED, 1)
    [(passed, details)] = pipeline.sql("select passed, details from nightmill.gate_verdict where gate = 'completion'")
    assert passed
    assert (details["completion"], details["contract"]["min_completion"]) == (0.95, 0.95)


def test_a_failed_check_blocks_the_batch_and_loosening_it_lets_the_cleared_task_go_on(pipeline: Pipeline) -> None:
    pipeline.write(
        "checks.yaml", "expectations:\n- {type: ExpectColumnValuesToBeInSet, column: title, value_set: [CANARYSET]}\n"
    )
    batch = pipeline.freeze()
    pipeline.drive(pipeline.plan(batch))
    reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
    said = r"1 of 2 checks failed: ExpectColumnValuesToBeInSet on title \(20 unexpected\) in 20 rows"
    with pytest.raises(Blocked, match=said) as failed:
        driver.run(pipeline.env, pipeline.live, batch.batch_id, checks.GATE)
    (to_look,) = re.findall(r"^To look, as nightmill_owner: (.*);$", failed.value.cause, re.MULTILINE)
    assert sum(number for _, number in pipeline.sql(to_look)) == 20  # the values with how often each comes
    blocked = batch_of(pipeline, batch.batch_id)
    assert (blocked.state, blocked.blocked_by) == (BatchState.BLOCKED, "check_staging")
    [(details,)] = pipeline.sql("select details::text from nightmill.gate_verdict where gate = 'check_staging'")
    assert "Text number" not in details
    assert "CANARYSET" not in details
    # Marked as success: compare and approve run, and publishing is refused with the way out.
    driver.run(pipeline.env, pipeline.live, batch.batch_id, compare.GATE)
    driver.run(pipeline.env, pipeline.live, batch.batch_id, registry.approval(0))
    with pytest.raises(Blocked, match=r"BLOCKED by check_staging.*Remedy: Clear check_staging"):
        publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
    assert pipeline.sql(SHOWN) == []

    pipeline.write("checks.yaml", "expectations:\n- {type: ExpectColumnValuesToNotBeNull, column: title}\n")
    assert isinstance(driver.run(pipeline.env, pipeline.live, batch.batch_id, checks.GATE), Passed)
    publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
    assert pipeline.sql(SHOWN) == [(batch.batch_id,)]


def test_a_failed_check_tells_the_observed_number_and_declared_words_but_no_text_of_an_answer(
    pipeline: Pipeline,
) -> None:
    pipeline.write("output.py", OUTPUT.replace("title: str", 'title: str\n    kind: Literal["note", "echo"] = "note"'))
    pipeline.edit("output.py", "from pydantic", "from typing import Literal\n\nfrom pydantic")
    pipeline.edit("job.yaml", "view: notes", "view: kinds")
    pipeline.apply()
    pipeline.write(
        "checks.yaml",
        "expectations:\n"
        "- {type: ExpectColumnMeanToBeBetween, column: pages, min_value: 1000}\n"
        "- {type: ExpectTableRowCountToBeBetween, min_value: 1000}\n"
        "- {type: ExpectColumnMostCommonValueToBeInSet, column: kind, value_set: [letter]}\n"
        "- {type: ExpectColumnMostCommonValueToBeInSet, column: title, value_set: [~~~]}\n",
    )
    batch = pipeline.freeze()
    pipeline.drive(pipeline.plan(batch))
    reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
    with pytest.raises(Blocked) as failed:
        driver.run(pipeline.env, pipeline.live, batch.batch_id, checks.GATE)
    told = failed.value.cause
    ((mean,),) = pipeline.sql("select avg(pages)::float8 from nightmill.rows_kinds")
    assert f"ExpectColumnMeanToBeBetween on pages saw {mean:g}" in told
    assert "ExpectTableRowCountToBeBetween saw 20" in told
    assert re.search("ExpectColumnMostCommonValueToBeInSet on kind .*saw (note|echo)", told)
    assert re.search(r"ExpectColumnMostCommonValueToBeInSet on title .*saw \d+ other value", told)
    for query in re.findall(r"^To look, as nightmill_owner: (.*);$", told, re.MULTILINE):
        assert pipeline.sql(query)
    for (title,) in pipeline.sql("select title from nightmill.rows_kinds"):
        assert title not in told


def test_a_gate_that_nobody_configured_is_called_so_and_opens(pipeline: Pipeline) -> None:
    made = run_unchecked(pipeline)
    assert pipeline.sql(SHOWN) == [(made.batch.batch_id,)]
    words = "gates: completion passed, check_staging passed, compare not configured, approve not configured"
    assert words in report.render(made)
    (standing,) = look(pipeline.env)
    assert dict(standing.gates)["compare"] == dict(standing.gates)["approve"] == "not configured"
    assert pipeline.sql("select verdict, passed from nightmill.gate_verdict where gate = 'compare'") == [
        ("not configured", None)
    ]


def test_the_tables_of_the_receipt_are_aligned_whatever_their_longest_name_and_number(pipeline: Pipeline) -> None:
    assert aligned([("items planned", 1_234_567), ("bucket/class/a_code_that_is_longer_than_the_others", 1)]) == [
        "  items planned                                       1,234,567",
        "  bucket/class/a_code_that_is_longer_than_the_others          1",
    ]
    set_faults(pipeline.simulator, line_error=[{"match": "-4$", "status": 400, "code": "bad_" * 12, "times": None}])
    with pytest.raises(Terminal):
        run_unchecked(pipeline)
    lines = report.render(report.build(pipeline.env, 1)).splitlines()
    table = [line for line in lines[1:] if line.startswith("  ")]
    starts = [lines.index(line) for line in table]
    for one, other in pairwise(starts):
        if other == one + 1:  # of one table
            assert len(lines[one]) == len(lines[other]), lines[one : other + 1]


def test_publish_without_a_recorded_verdict_of_each_gate_is_refused(pipeline: Pipeline) -> None:
    batch = pipeline.freeze()
    pipeline.drive(pipeline.plan(batch))
    with pytest.raises(Terminal, match=r"was not reconciled\. Remedy: Clear reconcile"):
        publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
    reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
    with pytest.raises(Blocked, match="no recorded pass of check_staging in generation 1"):
        publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
    assert pipeline.sql(SHOWN) == []
    with pytest.raises(Terminal, match=r"nothing was published\. Remedy: Clear publish"):
        report.run(pipeline.env, batch.batch_id)
    publish_unchecked(pipeline, batch)
    assert pipeline.sql(SHOWN) == [(batch.batch_id,)]


def test_a_batch_of_an_older_interval_does_not_replace_a_newer_one(pipeline: Pipeline) -> None:
    days = [datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2, 3)]
    newer = run_unchecked(pipeline, "run-2", data_interval_start=days[1], data_interval_end=days[2])
    older = pipeline.freeze("run-1", data_interval_start=days[0], data_interval_end=days[1])
    pipeline.drive(pipeline.plan(older))
    reconciled(pipeline, older)
    with pytest.raises(Terminal, match=rf"shows batch {newer.batch.batch_id}, which is newer"):
        publish.run(pipeline.env, pipeline.live, older.batch_id, "tester")
    assert pipeline.sql(SHOWN) == [(newer.batch.batch_id,)]
    assert batch_of(pipeline, older.batch_id).state is BatchState.VALIDATING


def test_the_receipt_adds_up_with_the_providers_books_and_accuracy_with_the_known_answers(pipeline: Pipeline) -> None:
    pipeline.sql("delete from nightmill.price")
    pipeline.sql(
        "insert into nightmill.price (model, effective_from, input_per_million, cached_input_per_million, "
        "output_per_million, batch_discount) values ('echo-1', '2020-01-01', 2000, 1000, 8000, 0.25)"
    )
    pipeline.sql(
        "create table known as select id as source_id, 'Summarise this document. Text' as title, 0 as pages "
        "from documents where id <= 'doc-10'"
    )
    pipeline.sql("update known set pages = 1 where source_id = 'doc-03'")
    pipeline.sql("update known set pages = null where source_id = 'doc-04'")
    pipeline.edit("job.yaml", "publish:", "gold: {query: 'select * from known', fields: [pages, title]}\npublish:")
    set_faults(pipeline.simulator, line_error=[{"match": "-2$", "times": 1}])
    made = run_unchecked(pipeline)

    usage = pipeline.simulator.books(summary=True)["usage"]
    assert made.receipt is not None
    # The failed request has no usage of its own; what the provider reports for its whole batch shows that it was free.
    assert (made.spent.requests, made.spent.estimated) == (21, 0)
    assert made.spent.prompt == usage["prompt_tokens"]
    assert made.spent.completion == usage["completion_tokens"]
    listed = Decimal(made.spent.prompt * 2000 + made.spent.completion * 8000) / 1_000_000
    assert (made.receipt.list_price, made.receipt.paid) == (listed, listed * Decimal("0.75"))
    assert made.receipt.saved_by_batch == listed - made.receipt.paid
    assert [(one.field, one.known, one.right) for one in made.accuracy] == [("pages", 9, 8), ("title", 10, 0)]
    text = report.render(made)
    assert "provider calls: 21" in text
    assert "field accuracy of pages: 88.9% (8 of 9 with a known answer)" in text

    second = run_unchecked(pipeline, "run-2")
    assert second.receipt is not None
    answered = Decimal(usage["prompt_tokens"] * 2000 + usage["completion_tokens"] * 8000) / 1_000_000
    assert (second.receipt.paid, second.receipt.saved_by_reuse) == (0, answered * Decimal("0.75"))
    assert "provider calls: 0" in report.render(second)


def test_a_check_of_its_own_sql_changes_nothing_and_ends_in_time(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Great Expectations runs the queries of this one as they are, on the ledger."""
    pipeline.sql("create table canary as select 1 as n")
    pipeline.sql("grant all on canary to nightmill_writer")
    pipeline.sql(
        "create function writes_anyway() returns int language plpgsql as "
        "$$ begin delete from public.canary; return 1; end $$"
    )
    attacks = (
        "select 1; commit; begin read write; delete from public.canary; commit; select 1",
        "set transaction read write",
        "set default_transaction_read_only = off",
        "select set_config('default_transaction_read_only', 'off', false), public.writes_anyway()",
        "delete from public.canary returning 1",
        "select pg_sleep(30)",
    )
    asked = [
        {"type": "ExpectQueryResultsToMatchComparison", "base_query": query, "comparison_query": "select 1 as n",
         "comparison_data_source_name": "ledger"}
        for query in (*attacks, "select 1 as n")
    ]  # fmt: skip
    pipeline.write("checks.yaml", json.dumps({"expectations": asked}))
    monkeypatch.setattr(checks, "LIMIT_S", 1)
    batch = pipeline.freeze()
    pipeline.drive(pipeline.plan(batch))
    reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
    with pytest.raises(Blocked, match=f"{len(attacks)} of {len(asked) + 1} checks failed"):
        driver.run(pipeline.env, pipeline.live, batch.batch_id, checks.GATE)
    assert pipeline.sql("select * from canary") == [(1,)]

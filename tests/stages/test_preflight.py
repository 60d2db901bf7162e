"""preflight: the estimate, and the dry run that ends with it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from support.pipeline import Pipeline
from support.steps import batch_of, publish_unchecked, run_unchecked

from nightmill.domain.errors import Blocked, Terminal
from nightmill.domain.states import BatchState
from nightmill.gates import checks, compare, driver, registry
from nightmill.stages import preflight, publish, reconcile, report

PRICE = """delete from nightmill.price;
insert into nightmill.price (model, effective_from, input_per_million, cached_input_per_million,
    output_per_million, batch_discount) values ('echo-1', '2020-01-01', 2, 1, 8, 0.5)"""


def test_a_dry_run_ends_estimated_and_every_later_stage_ends_quietly(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline.sql(PRICE)
    caplog.set_level(logging.INFO)
    batch = pipeline.freeze(dry_run=True)
    assert pipeline.plan(batch) == []
    estimated = batch_of(pipeline, batch.batch_id)
    assert estimated.state is BatchState.ESTIMATED

    assert reconcile.run(pipeline.env, pipeline.live, batch.batch_id).state is BatchState.ESTIMATED
    assert driver.run(pipeline.env, pipeline.live, batch.batch_id, checks.GATE) is None
    assert driver.run(pipeline.env, pipeline.live, batch.batch_id, compare.GATE) is None
    assert driver.run(pipeline.env, pipeline.live, batch.batch_id, registry.approval(0)) is None
    assert publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester") is None
    made = report.run(pipeline.env, batch.batch_id)

    assert (made.batch.state, made.spent.requests, made.shown) == (BatchState.ESTIMATED, 0, None)
    assert pipeline.simulator.books(summary=True)["batches"] == []
    assert pipeline.sql("select * from nightmill.gate_verdict") == []
    assert preflight.run(pipeline.env, pipeline.live, batch.batch_id) == []


def test_the_estimate_is_the_plan_in_items_tokens_money_and_waves(pipeline: Pipeline) -> None:
    pipeline.sql(PRICE)
    pipeline.sql("update documents set body = '' where id = 'doc-20'")
    pipeline.edit("job.yaml", "poll_interval_s: 1", "poll_interval_s: 1\n  expected_turnaround_s: 100")
    pipeline.edit("job.yaml", "poll_interval_s: 1", "poll_interval_s: 1\n  limits: {enqueued_prompt_tokens: 400}")
    batch = pipeline.freeze()
    pipeline.plan(batch)
    [(tokens,)] = pipeline.sql("select sum(tokens)::int from nightmill.item where skip_reason is null")
    estimate = batch_of(pipeline, batch.batch_id).estimate
    assert estimate is not None
    listed = (Decimal(tokens) * 2 + Decimal(19 * 50) * 8) / 1_000_000
    waves = -(-tokens // 400)
    assert waves > 1
    assert {
        **estimate,
        "list_price": Decimal(estimate["list_price"]),
        "batch_price": Decimal(estimate["batch_price"]),
    } == {
        "planned": 20,
        "settled": 1,
        "to_send": 19,
        "shards": 2,
        "prompt_tokens": tokens,
        "reserved_output_tokens": 19 * 50,
        "list_price": listed,
        "batch_price": listed / 2,
        "waves": waves,
        "expected_seconds": waves * 100.0,
        "reused": 0,
    }


def test_a_model_without_a_price_is_estimated_without_money(pipeline: Pipeline) -> None:
    pipeline.sql("delete from nightmill.price")
    batch = pipeline.freeze()
    pipeline.plan(batch)
    estimate = batch_of(pipeline, batch.batch_id).estimate
    assert estimate is not None
    assert (estimate["list_price"], estimate["batch_price"], estimate["waves"]) == (None, None, 1)


def test_a_plan_of_nothing_but_reuse_maps_over_no_shard_and_still_publishes(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    batch = pipeline.freeze("run-2")
    assert pipeline.plan(batch) == []
    estimate = batch_of(pipeline, batch.batch_id).estimate
    assert estimate is not None
    assert (estimate["settled"], estimate["reused"], estimate["to_send"], estimate["waves"]) == (20, 20, 0, 0)
    assert batch_of(pipeline, batch.batch_id).state is BatchState.QUEUED


def test_the_report_of_a_dry_run_says_the_estimate_in_the_words_of_the_log(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline.sql(PRICE)
    pipeline.edit("job.yaml", "shards: {count: 2}", "shards: {count: 1}")
    caplog.set_level(logging.INFO)
    batch = pipeline.freeze(dry_run=True)
    pipeline.plan(batch)
    text = report.render(report.build(pipeline.env, batch.batch_id))
    lines = [line for line in text.splitlines() if line.startswith(("estimate:", "tokens:", "price:", "finish:"))]
    assert lines[0] == "estimate: 20 of 20 items to send in 1 shard; 0 settled without a call, 0 of them reused"
    assert lines[1].endswith("in, up to 1,000 out")
    assert lines[2].startswith("price: at most $0.0")
    assert lines[3] == "finish: 1 wave, about 60 min at the expected turnaround"
    for line in lines:
        assert any(line in message for message in caplog.messages)


def test_the_report_of_a_run_holds_the_estimate_against_what_came(pipeline: Pipeline) -> None:
    pipeline.sql(PRICE)
    made = run_unchecked(pipeline)
    assert made.batch.estimate is not None
    assert made.receipt is not None
    tokens, real = made.batch.estimate["prompt_tokens"], made.spent.prompt
    lines = report.render(made).splitlines()
    apart = f"{(real - tokens) / tokens:+.1%}"
    assert (
        f"tokens, estimated and real: {tokens:,} and {real:,} in ({apart}), at most 1,000 and "
        f"{made.spent.completion:,} out"
    ) in lines
    most = Decimal(made.batch.estimate["batch_price"])
    assert f"cost, estimated and real: at most ${most:.4f} without retries and ${made.receipt.paid:.4f}" in lines


def test_a_report_of_a_run_that_sent_nothing_compares_nothing(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    assert "estimated and real" not in report.render(run_unchecked(pipeline, "run-2"))


def test_an_estimate_that_an_earlier_version_kept_without_the_reused_items_can_be_shown(pipeline: Pipeline) -> None:
    made = run_unchecked(pipeline)
    pipeline.sql("update nightmill.batch set estimate = estimate - 'reused'")
    assert "estimated and real" in report.render(report.build(pipeline.env, made.batch.batch_id))


DAY = timedelta(days=1)


def interval_of(end: datetime) -> dict[str, datetime]:
    return {"data_interval_start": end - DAY, "data_interval_end": end}


def changed_documents(pipeline: Pipeline) -> None:
    pipeline.sql("update documents set version = '2', body = body || ' More.'")


def test_a_run_for_a_past_interval_that_publish_would_refuse_asks_before_anything_is_paid_and_clearing_goes_on(
    pipeline: Pipeline,
) -> None:
    today = datetime.now(UTC).replace(microsecond=0)
    run_unchecked(pipeline, "tonight", **interval_of(today))
    changed_documents(pipeline)
    paid = pipeline.simulator.books(summary=True)["executed"]
    batch = pipeline.freeze("last-week", **interval_of(today - 7 * DAY))
    with pytest.raises(
        Blocked, match=r"publish would refuse this run: the view notes shows batch 1 .* Nothing is paid"
    ):
        pipeline.plan(batch)
    blocked = batch_of(pipeline, batch.batch_id)
    assert (blocked.state, blocked.blocked_by) == (BatchState.BLOCKED, "preflight")
    assert pipeline.simulator.books(summary=True)["executed"] == paid
    pipeline.drive([one.shard_id for one in preflight.run(pipeline.env, pipeline.live, batch.batch_id)])  # cleared
    with pytest.raises(Terminal, match="which is newer than batch"):
        publish_unchecked(pipeline, batch)


def test_a_run_for_an_interval_that_ends_in_the_future_says_that_later_nights_would_be_refused(
    pipeline: Pipeline,
) -> None:
    tomorrow = datetime.now(UTC) + DAY
    batch = pipeline.freeze("ahead", **interval_of(tomorrow))
    with pytest.raises(
        Blocked, match=r"ends in the future, .* publish refuses every run whose interval ends before that"
    ):
        pipeline.plan(batch)
    assert pipeline.simulator.books(summary=True)["batches"] == []


def test_a_run_of_tonight_and_a_dry_run_of_any_interval_are_not_asked(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    now = datetime.now(UTC)
    pipeline.plan(pipeline.freeze("tonight", **interval_of(now)))
    assert "publish would refuse" not in caplog.text
    dry = pipeline.freeze("dry", dry_run=True, **interval_of(now + DAY))
    assert pipeline.plan(dry) == []
    assert "ends in the future" in caplog.text


def test_a_run_without_an_interval_after_a_later_one_was_published_is_asked_too(pipeline: Pipeline) -> None:
    ahead = pipeline.freeze("ahead", **interval_of(datetime.now(UTC) + DAY))
    with pytest.raises(Blocked):
        pipeline.plan(ahead)
    pipeline.drive([one.shard_id for one in preflight.run(pipeline.env, pipeline.live, ahead.batch_id)])
    publish_unchecked(pipeline, ahead)
    changed_documents(pipeline)
    batch = pipeline.freeze("by hand")
    with pytest.raises(Blocked, match="publish would refuse this run"):
        pipeline.plan(batch)

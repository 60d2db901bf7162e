"""Filters of a job from the trigger form to the bound query."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import batch_of, set_faults

from nightmill.domain.errors import ConfigError, SourceError
from nightmill.domain.states import BatchState

QUERY = """
    select id, version, tenant, body from documents
    where tenant = %(customer)s and length(body) >= %(shortest)s
      and (%(since)s is null or date '2026-01-01' + right(id, 2)::int >= %(since)s)
      and (%(number)s is null or right(id, 2)::int = %(number)s)
      and (%(text)s is null or id = %(text)s) and (not %(none)s)
"""
FILTERS = """  filters:
    customer: {type: enum, values: [acme, umbrella], default: acme, description: Whose documents.}
    shortest: {type: integer, minimum: 0, maximum: 1000, default: 0, description: Characters at least.}
    since: {type: date, nullable: true, minimum: 2026-01-01, description: From this day on.}
    number: {type: number, nullable: true, description: One number.}
    text: {type: string, nullable: true, description: One id.}
    none: {type: boolean, default: false, description: Nothing at all.}
"""


@pytest.fixture
def filtered(pipeline: Pipeline) -> Pipeline:
    query = QUERY.strip().replace("\n", "\n   ")
    pipeline.edit("job.yaml", "query: select id, version, tenant, body from documents", f"query: |\n    {query}")
    pipeline.edit("job.yaml", "provider:\n", FILTERS + "provider:\n")
    return pipeline


def frozen(pipeline: Pipeline, run_id: str, **params: Any) -> list[int]:
    """Freeze with these values; the numbers of the documents that came."""
    batch = pipeline.freeze(run_id, params=params)
    rows = pipeline.sql("select source_id from nightmill.item where batch_id = %s order by ordinal", batch.batch_id)
    return [int(row[0].removeprefix("doc-")) for row in rows]


def test_each_kind_of_filter_is_bound_with_its_type_and_null_restricts_nothing(filtered: Pipeline) -> None:
    assert frozen(filtered, "1") == list(range(1, 10))
    assert frozen(filtered, "2", customer="umbrella") == list(range(10, 21))
    assert frozen(filtered, "3", shortest=100) == [n for n in range(1, 10) if len(f"Text number {n}. ") * n >= 100]
    assert frozen(filtered, "4", since="2026-01-08") == [7, 8, 9]
    assert frozen(filtered, "5", number=3.0) == [3]
    assert frozen(filtered, "6", number=3) == [3]
    assert frozen(filtered, "7", text="doc-04") == [4]
    assert frozen(filtered, "8", none=True) == []
    assert frozen(filtered, "9", text="'; drop table documents; --") == []
    assert frozen(filtered, "10", customer="umbrella", limit=2) == [10, 11]


def test_a_misspelt_name_in_a_runs_configuration_starts_nothing(filtered: Pipeline) -> None:
    with pytest.raises(
        ConfigError, match=r"names 'custmer', which this job does not know \(did you mean 'customer'\?\)"
    ):
        filtered.freeze("bad", params={"custmer": "acme", "limit": 3})
    assert filtered.sql("select count(*) from nightmill.batch") == [(0,)]


def test_the_values_stand_in_the_batch_and_in_the_manifest(filtered: Pipeline) -> None:
    batch = filtered.freeze(params={"customer": "umbrella", "since": "2026-01-12", "limit": 5})
    expected = {
        "customer": "umbrella", "shortest": 0, "since": "2026-01-12", "number": None, "text": None, "none": False,
    }  # fmt: skip
    assert batch.params == expected | {"limit": 5}
    assert filtered.sql("select source_parameters from nightmill.batch") == [(expected,)]


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"customer": "hunter2"}, "The filter 'customer' .* expected one of acme, umbrella"),
        ({"customer": None}, "'customer' .* expected a value, found null"),
        ({"shortest": -1}, "'shortest' .* expected at least 0"),
        ({"shortest": "12"}, "'shortest' .* expected a whole number"),
        ({"since": "2025-12-31"}, "'since' .* expected at least 2026-01-01"),
        ({"since": "2026-02-30"}, "'since' .* expected a date such as 2026-01-31"),
        ({"text": "a\0b"}, "'text' .* expected text without the character NUL"),
    ],
)
def test_a_value_that_is_not_allowed_creates_no_batch_and_is_not_repeated(
    filtered: Pipeline, params: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        filtered.freeze(params=params)
    assert "hunter2" not in str(caught.value)
    assert "trigger form" in caught.value.remedy
    assert filtered.sql("select batch_id from nightmill.batch") == []


def test_clearing_a_refused_freeze_keeps_the_values_that_the_batch_was_opened_with(filtered: Pipeline) -> None:
    filtered.sql("insert into documents values (null, '1', 'umbrella', 'Nameless.')")
    with pytest.raises(SourceError, match="null"):
        filtered.freeze(params={"customer": "umbrella"})
    filtered.sql("delete from documents where id is null")
    batch = filtered.freeze(first_try=False, params={"customer": "acme", "limit": 1})
    assert (batch.incarnation, batch.item_count, batch.params["customer"]) == (1, 11, "umbrella")


def test_clearing_a_frozen_run_after_the_default_changed_keeps_its_manifest(filtered: Pipeline) -> None:
    batch = filtered.freeze()
    filtered.edit("job.yaml", "default: acme", "default: umbrella")
    again = filtered.freeze(first_try=False)
    assert (again.batch_id, again.item_count, again.params["customer"]) == (batch.batch_id, 9, "acme")


def test_a_filtered_run_goes_through_to_the_end_of_its_shards(filtered: Pipeline) -> None:
    set_faults(filtered.simulator)
    batch = filtered.freeze(params={"since": date(2026, 1, 8).isoformat()})
    filtered.drive(filtered.plan(batch))
    assert batch_of(filtered, batch.batch_id).state is BatchState.RUNNING


def test_a_run_of_low_priority_waits_while_others_fill_half_of_the_enqueued_limit(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "poll_interval_s: 1", "poll_interval_s: 1\n  limits: {enqueued_prompt_tokens: 3000}")
    set_faults(pipeline.simulator, hold=True)
    normal = pipeline.freeze("normal")
    first, _ = pipeline.plan(normal)
    pipeline.sql("update documents set version = '2', body = repeat(body, 3)")
    low = pipeline.freeze("low", params={"priority": "low"})
    shard, _ = pipeline.plan(low)
    pipeline.wake(first, restarted=True)
    pipeline.wake(shard, restarted=True)
    sent = dict(
        pipeline.sql("select batch_id, sum(prompt_tokens)::int from nightmill.provider_batch group by batch_id")
    )
    assert sent.keys() >= {normal.batch_id}
    assert sum(sent.values()) <= 1500
    normal_again = pipeline.freeze("normal-again")
    pipeline.wake(pipeline.plan(normal_again)[0], restarted=True)
    assert pipeline.sql("select sum(prompt_tokens)::int > 1500 from nightmill.provider_batch") == [(True,)]


def test_the_estimate_of_a_run_of_low_priority_counts_more_waves(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "poll_interval_s: 1", "poll_interval_s: 1\n  limits: {enqueued_prompt_tokens: 700}")
    waves = []
    for priority in ("normal", "low"):
        batch = pipeline.freeze(priority, params={"priority": priority})
        pipeline.plan(batch)
        waves.append((batch_of(pipeline, batch.batch_id).estimate or {})["waves"])
    assert waves == [2, 4]

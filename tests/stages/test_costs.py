"""Attempts and what no attempt explains are together what the provider reports; failures show their price."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import one_shard, publish_unchecked, set_faults

from nightmill.providers.openai.transport import OpenAIBatches
from nightmill.providers.port import ResultFile
from nightmill.stages import report

ADDS_UP = """
select count(*), bool_and(
    attempted.prompt + unattributed_prompt_tokens = (usage ->> 'input_tokens')::bigint
    and attempted.completion + unattributed_output_tokens = (usage ->> 'output_tokens')::bigint)
from nightmill.provider_batch_usage
join nightmill.provider_batch using (provider_batch_id)
cross join lateral (
    select coalesce(sum(prompt_tokens), 0) as prompt, coalesce(sum(output_tokens), 0) as completion
    from nightmill.attempt
    where attempt.provider_batch_id = provider_batch.provider_batch_id
) as attempted
"""


@pytest.fixture
def priced(pipeline: Pipeline) -> Pipeline:
    pipeline.sql("delete from nightmill.price")
    pipeline.sql("insert into nightmill.price values ('echo-1', '2020-01-01', 2000, 1000, 8000, 0.25)")
    return pipeline


def lose_lines(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """The first output file comes without its first lines, as often as it is fetched."""
    real, first = OpenAIBatches._fetched, list[str]()

    def fetched(self: OpenAIBatches, name: str, ref: str, path: Path) -> ResultFile:
        file = real(self, name, ref, path)
        if name == "output":
            first.append(ref)
        if first and ref == first[0]:
            path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[count:]))
        return file

    monkeypatch.setattr(OpenAIBatches, "_fetched", fetched)


def test_lost_answers_are_paid_and_stand_in_the_unattributed_entry(
    priced: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, shard = one_shard(priced)
    set_faults(priced.simulator, line_error=[{"match": "-2$", "times": 1}])
    lose_lines(monkeypatch, 3)
    priced.drive([shard])
    made = publish_unchecked(priced, batch)

    books = priced.simulator.books(summary=True)
    assert books["executed"] == 23
    assert priced.sql(ADDS_UP) == [(2, True)]
    usage = books["usage"]
    assert (made.spent.prompt, made.spent.completion) == (usage["prompt_tokens"], usage["completion_tokens"])
    assert made.receipt is not None
    listed = Decimal(usage["prompt_tokens"] * 2000 + usage["completion_tokens"] * 8000) / 1_000_000
    assert made.receipt.paid == listed * Decimal("0.75")

    failed = dict(made.failed)
    assert failed["transient"].requests == 4  # three lost lines, one server error
    assert failed["transient"].prompt == 0
    assert failed["unattributed"].completion > 0
    text = report.render(made)
    assert "failed attempts (class, attempts, tokens in and out, US dollars)" in text
    assert any(line.split()[0] == "unattributed" for line in text.splitlines())
    # In SQL the same: the attempts' own costs and the unattributed tokens make the receipt.
    [(attempts,)] = priced.sql("select sum(cost) from nightmill.attempt_cost")
    extra = failed["unattributed"]
    assert attempts + Decimal(extra.prompt * 2000 + extra.completion * 8000) / 1_000_000 * Decimal("0.75") == (
        made.receipt.paid
    )


def test_a_night_without_failures_has_nothing_unattributed(priced: Pipeline) -> None:
    batch, shard = one_shard(priced)
    priced.drive([shard])
    made = publish_unchecked(priced, batch)
    assert made.failed == []
    assert "failed attempts" not in report.render(made)
    assert priced.sql("select sum(abs(unattributed_prompt_tokens)) from nightmill.provider_batch_usage") == [(0,)]


def test_output_failures_show_what_they_cost(priced: Pipeline) -> None:
    priced.edit("job.yaml", "max_completion_tokens: 50", "max_completion_tokens: 15")
    batch, shard = one_shard(priced)
    priced.drive([shard])
    made = publish_unchecked(priced, batch)
    [(kind, used)] = made.failed
    assert (kind, used.requests, used.completion) == ("output", 20, 300)
    [(cost,)] = priced.sql("select sum(cost) from nightmill.attempt_cost where class = 'output'")
    assert f"{cost:.4f}" in report.render(made)


def test_a_provider_batch_whose_lines_all_failed_reports_no_tokens_and_none_are_guessed(priced: Pipeline) -> None:
    batch, shard = one_shard(priced)
    set_faults(priced.simulator, line_error=[{"match": "", "times": 1}])
    priced.drive([shard])
    made = publish_unchecked(priced, batch)

    usage = priced.simulator.books(summary=True)["usage"]
    assert (made.spent.requests, made.spent.estimated) == (40, 0)
    assert (made.spent.prompt, made.spent.completion) == (usage["prompt_tokens"], usage["completion_tokens"])
    assert priced.sql("select reported_prompt_tokens > 0 from nightmill.provider_batch_usage order by 1") == [
        (False,), (True,),
    ]  # fmt: skip


USAGES: list[tuple[Any, tuple[int | None, int | None]]] = [
    (None, (None, None)),
    ({"input_tokens": 0, "output_tokens": 0}, (None, None)),  # no report: the lines have answers
    ({"input_tokens": "many"}, (None, None)),
    ({"input_tokens": 1e30, "output_tokens": None}, (None, None)),
    ({"input_tokens": 476, "input_tokens_details": {"cached_tokens": 1024}, "output_tokens": 9}, (None, None)),
    ({"input_tokens": -476, "output_tokens": 9}, (None, None)),
    ({"input_tokens": 476, "output_tokens": 9, "total_tokens": 9}, (None, None)),
    ({"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 9}, (9, 4)),
    ({"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens": 2}, (7, 3)),
    ({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}}, (9, 4)),
    ([1, 2], (None, None)),
]


def test_whatever_a_provider_writes_as_usage_is_read_or_counts_as_no_report(priced: Pipeline) -> None:
    batch, shard = one_shard(priced)
    priced.drive([shard])
    for usage, told in USAGES:
        priced.sql("update nightmill.provider_batch set usage = %s::jsonb", json.dumps(usage))
        [(prompt, cached)] = priced.sql(
            "select reported_prompt_tokens, case when is_reported then reported_cache_read_tokens end "
            "from nightmill.provider_batch_usage"
        )
        assert (prompt, cached) == told, usage
        made = report.build(priced.env, batch.batch_id)
        [(attempted,)] = priced.sql("select sum(prompt_tokens) from nightmill.attempt")
        assert made.spent.prompt == (attempted if prompt is None else prompt), usage


def test_usage_that_cannot_be_is_kept_raw_and_marked_and_never_makes_a_price(priced: Pipeline) -> None:
    batch, shard = one_shard(priced)
    set_faults(priced.simulator, answer={"kind": "impossible_usage"}, usage_shown="impossible")
    priced.drive([shard])
    made = publish_unchecked(priced, batch)
    [(prompt,)] = priced.sql("select sum(tokens) from nightmill.item")
    assert (made.spent.prompt, made.spent.cached, made.spent.completion) == (prompt, 0, 0)  # our own count, marked
    assert (made.spent.estimated, made.spent.odd, made.spent.odd_reports) == (20, 20, 1)
    assert made.receipt is not None
    assert made.receipt.paid > 0
    [(tokens, kept)] = priced.sql(
        "select count(prompt_tokens) + count(cache_read_tokens) + count(output_tokens), "
        "bool_and((odd_usage #>> '{prompt_tokens_details,cached_tokens}')::int > (odd_usage ->> 'prompt_tokens')::int) "
        "from nightmill.attempt"
    )
    assert (tokens, kept) == (0, True)
    assert "usage that cannot be, of 20 requests and the totals of 1 provider batch" in report.render(made)


def test_cache_reads_cache_writes_and_reasoning_tokens_have_columns_of_their_own_and_are_paid_once(
    priced: Pipeline,
) -> None:
    priced.sql("update nightmill.price set cache_write_per_million = 2500")
    batch, shard = one_shard(priced)
    set_faults(priced.simulator, answer={"kind": "cached_usage"})
    priced.drive([shard])
    made = publish_unchecked(priced, batch)
    columns = "prompt_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens"
    sums = ", ".join(f"sum({name})::int" for name in columns.split(", "))
    [told] = priced.sql(f"select {sums} from nightmill.attempt")
    assert priced.sql(f"select {sums} from nightmill.result") == [told]
    prompt, cached, written, completion, reasoning = told
    spent = made.spent
    assert (spent.prompt, spent.cached, spent.cache_written, spent.completion, spent.reasoning) == told
    assert 0 < written < cached < prompt
    assert 0 < reasoning < completion
    fresh = prompt - cached - written
    listed = Decimal(fresh * 2000 + cached * 1000 + written * 2500 + completion * 8000) / 1_000_000
    assert made.receipt is not None
    assert made.receipt.paid == listed * Decimal("0.75")
    assert priced.sql("select sum(cost) from nightmill.attempt_cost") == [(made.receipt.paid,)]
    assert f"({cached:,} from the cache, {written:,} written to it)" in report.render(made)

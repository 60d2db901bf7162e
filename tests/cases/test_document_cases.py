"""What documents hold, and what readers see: cases before the first and after the last call to a provider."""

from __future__ import annotations

import pytest
from support.pipeline import Pipeline
from support.steps import paid_once, reconciled, run_unchecked, set_faults

from nightmill.domain.errors import SourceError
from nightmill.jobs.prompt.prompt import Prompt
from nightmill.jobs.tokens import TokenCounter
from nightmill.stages import publish


def test_c10_a_source_that_says_an_id_twice_is_refused_before_anything_is_sent(pipeline: Pipeline) -> None:
    pipeline.documents([("doc-03", "2", "acme", "another text")])
    with pytest.raises(SourceError, match="doc-03"):
        pipeline.freeze()
    paid_once(pipeline, 0)


def test_c85_braces_in_a_document_are_text() -> None:
    body = 'Cost {0.__class__} and {missing} {{ body }} {% raw %} {"name": ""}'
    [message] = Prompt('Extract {"name": ""} from:\n{{ body }}').render({"body": body})
    assert message["content"] == f'Extract {{"name": ""}} from:\n{body}'


def test_c86_the_text_of_a_special_token_is_counted_like_any_other() -> None:
    text = "the token <|endoftext|> is used by GPT-2"
    assert TokenCounter("gpt-4o").count(text) > TokenCounter("gpt-4o").count("the token is used by GPT-2")


def test_c88_blank_documents_are_excluded_and_an_empty_source_publishes_an_empty_batch(pipeline: Pipeline) -> None:
    pipeline.sql("update documents set body = ' \n\t ' where id = 'doc-01'")
    assert run_unchecked(pipeline).counts == {"accepted": 19, "excluded": 1}
    paid_once(pipeline, 19)
    pipeline.sql("delete from documents")
    report = run_unchecked(pipeline, "run-2")
    assert report.counts == {}
    assert pipeline.sql("select count(*) from results.notes") == [(0,)]
    paid_once(pipeline, 19)


def test_c89_a_document_over_the_context_window_is_never_sent(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "  model: echo-1", "  model: echo-1\n  context_window_tokens: 100")
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0.1}\npublish:")
    report = run_unchecked(pipeline)
    [(gap, over)] = report.gaps
    assert gap == "dead_lettered/input/over_context"
    paid_once(pipeline, 20 - over)


def test_c101_c103_readers_see_the_old_batch_whole_until_one_row_points_to_the_new_one(pipeline: Pipeline) -> None:
    def seen() -> list[tuple[object, ...]]:
        return pipeline.sql("select count(*), count(*) filter (where title like 'Describe%%') from results.notes")

    run_unchecked(pipeline)
    pipeline.edit("prompt.md", "Summarise", "Describe")
    set_faults(pipeline.simulator, hold=True, hold_after=8)
    batch = pipeline.freeze("run-2")
    shards = pipeline.plan(batch)
    pipeline.wake(shards[0], restarted=True)
    assert seen() == [(20, 0)]

    set_faults(pipeline.simulator)
    pipeline.drive(shards)
    assert pipeline.sql("select count(*) from nightmill.rows_notes where batch_id = %s", batch.batch_id) == [(20,)]
    reconciled(pipeline, batch)
    assert seen() == [(20, 0)]
    publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
    assert seen() == [(20, 20)]

"""A job on the embeddings endpoint, from source rows to the published view."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from support.pipeline import Pipeline

from nightmill.domain.states import BatchState

OUTPUT = """
from pydantic import BaseModel


class Output(BaseModel):
    vector: list[float]
"""
CHECKS = """
expectations:
  - {type: ExpectColumnValuesToNotBeNull, column: vector}
"""


@pytest.fixture
def vectors(pipeline: Pipeline) -> Pipeline:
    """The job of `pipeline` made an embedding job with a view of its own."""
    pipeline.edit("job.yaml", "model: echo-1", "model: embed-1\n  task: embeddings")
    pipeline.edit("job.yaml", "{max_completion_tokens: 50}", "{dimensions: 48}")
    pipeline.edit("job.yaml", "view: notes", "view: note_vectors")
    pipeline.write("prompt.md", "{{ body }}\n")
    pipeline.write("output.py", OUTPUT)
    pipeline.write("checks.yaml", CHECKS)
    pipeline.apply()
    return pipeline


def test_vectors_go_from_source_rows_to_an_array_column_and_are_reused(vectors: Pipeline) -> None:
    report = vectors.run("run-1")

    assert report.batch.state is BatchState.PUBLISHED
    assert report.counts == {"accepted": 20}
    rows = vectors.sql("select vector, model from results.note_vectors")
    assert {(len(vector), model) for vector, model in rows} == {(48, "embed-1")}
    assert all(math.isclose(math.hypot(*vector), 1, rel_tol=1e-9) for vector, _ in rows)
    [(kind,)] = vectors.sql("select distinct pg_typeof(vector)::text from results.note_vectors")
    assert kind == "double precision[]"

    again = vectors.run("run-2")
    assert again.counts == {"reused": 20}
    assert again.spent.requests == 0
    assert vectors.sql("select vector from results.note_vectors order by 1") == sorted(row[:1] for row in rows)


def test_the_receipt_counts_the_texts_and_no_completion(vectors: Pipeline) -> None:
    report = vectors.run()

    [(frozen,)] = vectors.sql("select sum(tokens) from nightmill.item")
    assert report.spent.prompt == frozen == vectors.simulator.books()["usage"]["prompt_tokens"]
    assert (report.spent.completion, report.spent.estimated) == (0, 0)
    assert report.receipt is not None
    assert report.receipt.list_price == Decimal("0.02") * frozen / 1_000_000


def test_vectors_of_another_size_than_the_rule_wants_are_dead_letters_and_publish_nothing(vectors: Pipeline) -> None:
    vectors.edit("job.yaml", "parameters: {dimensions: 48}", "parameters: {}")
    vectors.edit("job.yaml", "publish:", "validation: {embedding: {dimensions: 48}}\npublish:")
    vectors.edit("job.yaml", "max_attempts: 3", "max_attempts: 1")
    batch = vectors.freeze()
    vectors.drive(vectors.plan(batch))

    failed = vectors.sql("select distinct class, code from nightmill.attempt")
    assert failed == [("output", "wrong_dimensions")]
    assert vectors.sql("select count(*) from results.note_vectors") == [(0,)]


def test_stored_vectors_are_checked_against_a_new_rule_before_they_are_reused(vectors: Pipeline) -> None:
    vectors.edit("job.yaml", "parameters: {dimensions: 48}", "parameters: {}")
    vectors.run("run-1")

    vectors.edit("job.yaml", "publish:", "validation: {embedding: {dimensions: 1536}}\npublish:")
    assert vectors.plan(vectors.freeze("run-2")) == []
    vectors.edit("job.yaml", "dimensions: 1536", "dimensions: 48")
    batch = vectors.freeze("run-3")
    assert vectors.plan(batch) != []
    assert vectors.sql("select count(*) from nightmill.outcome where batch_id = %s", batch.batch_id) == [(0,)]

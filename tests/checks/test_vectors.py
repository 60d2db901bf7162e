"""Vectors against the contract of an embedding job."""

from __future__ import annotations

import math

import pytest

from nightmill.checks.checker import Checker
from nightmill.domain.failures import Failure, FailureClass
from nightmill.domain.outcomes import Accepted
from nightmill.jobs.contract import JobDefinition

JOB = """description: Vectors.
source:
  conn_id: source
  query: select * from documents
  columns: {id: id, text: body}
provider:
  conn_id: provider
  model: embed-1
  task: embeddings
  parameters: {dimensions: 3}
publish: {view: vectors}
"""
OUTPUT = """from pydantic import BaseModel, field_validator

class Output(BaseModel):
    vector: list[float]

    @field_validator("vector")
    @classmethod
    def _points_somewhere(cls, value: list[float]) -> list[float]:
        if not any(value):
            raise ValueError("all zero")
        return value
"""


def checker(job: str = JOB) -> Checker:
    files = {"job.yaml": job, "prompt.md": "{{ body }}", "output.py": OUTPUT}
    return Checker(JobDefinition("vectors", {name: text.encode() for name, text in files.items()}))


def test_a_vector_of_finite_numbers_is_accepted_and_reads_as_valid_again_when_stored() -> None:
    verdict = checker().check_vector([0.1, -2, 3e-300])
    assert isinstance(verdict, Accepted)
    assert verdict.answer == {"vector": [0.1, -2.0, 3e-300]}
    assert isinstance(checker().check_text('{"vector": [0.1, -2.0, 3e-300]}', {}), Accepted)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, None])
def test_a_number_that_is_not_finite_is_an_output_failure(odd: float | None) -> None:
    failure = checker().check_vector([0.1, odd, 0.2])
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.code) == (FailureClass.OUTPUT, "not_finite")


@pytest.mark.parametrize("vector", [[1.0], [1.0, 2.0], [1.0, 2.0, 3.0, 4.0]])
def test_another_number_of_dimensions_is_an_output_failure_also_of_a_stored_vector(vector: list[float]) -> None:
    expected = Failure(FailureClass.OUTPUT, "wrong_dimensions", f"{len(vector)} numbers instead of 3")
    assert checker().check_vector(vector) == expected
    assert checker().check_text(f'{{"vector": {vector}}}', {}) == expected


def test_the_jobs_own_validators_see_the_vector() -> None:
    failure = checker().check_vector([0.0, 0.0, 0.0])
    assert isinstance(failure, Failure)
    assert failure.code == "schema"


def test_the_validation_rule_counts_where_no_dimensions_are_asked_for() -> None:
    ruled = JOB.replace("  parameters: {dimensions: 3}\n", "validation: {embedding: {dimensions: 2}}\n")
    assert isinstance(checker(ruled).check_vector([1.0, 2.0]), Accepted)
    assert isinstance(checker(ruled).check_vector([1.0]), Failure)
    free = JOB.replace("  parameters: {dimensions: 3}\n", "")
    assert isinstance(checker(free).check_vector([1.0]), Accepted)

"""What a person is told when a job folder does not fit a request for embeddings."""

from __future__ import annotations

import pytest

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
OUTPUT = """from pydantic import BaseModel

class Output(BaseModel):
    vector: list[float]
"""
RULE = "validation: {embedding: {dimensions: 3}}\n"
CITATIONS = "validation: {citations: [{quote: vector, source: body}]}\n"


def said(job: str = JOB, prompt: str = "{{ body }}", output: str = OUTPUT) -> list[str]:
    files = {"job.yaml": job, "prompt.md": prompt, "output.py": output}
    definition = JobDefinition("vectors", {name: text.encode() for name, text in files.items()})
    return [str(mistake) for mistake in definition.mistakes()]


def test_a_fitting_folder_has_no_mistakes_and_an_array_column() -> None:
    assert said() == said(JOB + RULE) == said(prompt="<!-- user -->\n{{ body }}") == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dimensions: 3", "dimensions: 0", "job.yaml:10: provider.parameters.dimensions: expected a whole number >= 1"),
        ("dimensions: 3", "dimensions: '3'", "job.yaml:10: provider.parameters.dimensions: expected a whole number >="),
        (
            "dimensions: 3",
            "encoding_format: base64",
            "job.yaml:10: provider.parameters.encoding_format: buys an answer in a form that nobody",
        ),
        ("publish:", CITATIONS + "publish:", "job.yaml:11: validation.citations: a vector quotes nothing"),
        ("publish:", RULE.replace("3", "4") + "publish:", "3 numbers are asked for and validation.embedding.dimen"),
        ("task: embeddings", "task: embedings", "job.yaml:9: provider.task: expected one of"),
    ],
)
def test_job_yaml_must_fit(old: str, new: str, message: str) -> None:
    [mistake] = said(JOB.replace(old, new))
    assert message in mistake


def test_the_rule_for_vectors_has_no_place_in_a_job_that_asks_for_messages() -> None:
    [mistake] = said(JOB.replace("task: embeddings", "task: chat") + RULE)
    assert mistake == "job.yaml:12: validation.embedding: this is no embedding job"


def test_the_prompt_is_one_text() -> None:
    [mistake] = said(prompt="<!-- system -->\nEmbed.\n<!-- user -->\n{{ body }}")
    assert mistake == "prompt.md: an embedding job embeds one text, and here are the messages system, user"


@pytest.mark.parametrize("fields", ["vector: list[int]", "vectors: list[float]", "vector: list[float]\n    kind: str"])
def test_the_output_is_one_vector(fields: str) -> None:
    [mistake] = said(output=OUTPUT.replace("vector: list[float]", fields))
    assert mistake == "output.py: Output: a request for embeddings is answered with a vector only"

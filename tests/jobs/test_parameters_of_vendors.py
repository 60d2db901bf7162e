"""What makes every request of a job fail at its provider is told with its line, before anything is sent."""

# ruff: noqa: E501 - messages are quoted whole

from __future__ import annotations

import pytest

from nightmill.jobs.check.definition import mistakes_of
from nightmill.jobs.contract import JobDefinition

JOB = """description: A job.
source:
  conn_id: source
  query: select * from documents
  columns: {id: id, text: body}
provider:
  adapter: anthropic
  conn_id: provider
  model: claude-opus-5
  max_output_tokens: 100
  parameters: {thinking: {type: adaptive}}
publish:
  view: things
"""
OUTPUT = "from pydantic import BaseModel\n\n\nclass Output(BaseModel):\n    kind: str\n"


def job(old: str = "", new: str = "") -> JobDefinition:
    assert old in JOB
    files = {"job.yaml": JOB.replace(old, new), "prompt.md": "{{ body }}\n", "output.py": OUTPUT}
    return JobDefinition("things", {name: text.encode() for name, text in files.items()})


def test_a_job_for_the_messages_api_has_no_mistakes_and_no_warnings() -> None:
    assert mistakes_of(job()) == []
    assert job().warnings() == []
    effort = job("{thinking: {type: adaptive}}", "{output_config: {effort: low}, cache_control: {type: ephemeral}}")
    assert mistakes_of(effort) == []
    assert effort.warnings() == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("thinking: {type: adaptive}", "temperature: 0", "job.yaml:11: provider.parameters.temperature: this provider's models take no sampling parameters: every request with it would fail"),
        ("thinking: {type: adaptive}", "top_k: 5", "job.yaml:11: provider.parameters.top_k: this provider's models take no sampling parameters: every request with it would fail"),
        ("thinking: {type: adaptive}", "seed: 5", "job.yaml:11: provider.parameters.seed: is a parameter of another provider's requests: every request with it would fail"),
        ("thinking: {type: adaptive}", "stop: [END]", "job.yaml:11: provider.parameters.stop: is a parameter of another provider's requests: every request with it would fail"),
        ("thinking: {type: adaptive}", "output_config: {format: {type: json_schema}}", "job.yaml:11: provider.parameters.output_config.format: competes with the schema of output.py, which nightmill asks for"),
        ("  max_output_tokens: 100\n", "", "job.yaml:6: provider.max_output_tokens: the adapter anthropic needs a limit to the tokens of each answer"),
        ("adapter: anthropic", "adapter: antropic", "job.yaml:7: provider.adapter: expected one of anthropic, openai; did you mean 'anthropic'?"),
    ],
)  # fmt: skip
def test_what_would_fail_in_every_request_is_a_mistake_with_its_line(old: str, new: str, said: str) -> None:
    (mistake,) = mistakes_of(job(old, new))
    assert str(mistake) == said
    assert mistake.remedy


def test_a_parameter_that_looks_like_a_known_one_is_a_warning() -> None:
    [warning] = job("thinking:", "thinkng:").warnings()
    assert "did you mean 'thinking'?" in str(warning)


def test_a_task_that_the_vendor_does_not_have_is_a_mistake() -> None:
    said = [
        str(one) for one in mistakes_of(job("  model: claude-opus-5", "  model: claude-opus-5\n  task: embeddings"))
    ]
    assert "job.yaml:10: provider.task: the adapter anthropic takes no requests for embeddings" in said

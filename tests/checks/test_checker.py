"""An answer that ended at its token limit: the advice names what this job can change."""

import pytest

from nightmill.checks.checker import Checker
from nightmill.domain.endings import Ending
from nightmill.domain.failures import Failure
from nightmill.jobs.contract import JobDefinition

JOB = """description: A job.
source: {conn_id: s, query: select 1, columns: {id: id, text: body}}
provider: {conn_id: p, model: m, parameters: %s}
publish: {view: v}
"""
OUTPUT = b"from pydantic import BaseModel\nclass Output(BaseModel):\n    title: str\n"


@pytest.mark.parametrize(
    ("parameters", "advice"),
    [
        ("{max_completion_tokens: 9}", "raise provider.parameters.max_completion_tokens, or repair."),
        ("{max_tokens: 9}", "raise provider.parameters.max_tokens, or repair."),
        ("{max_tokens: 9, max_completion_tokens: 9}", "raise provider.parameters.max_completion_tokens, or repair."),
        ("{temperature: 0}", "job.yaml sets no limit, so the model's own one cut it: ask for shorter"),
        ("{max_tokens: null}", "job.yaml sets no limit, so the model's own one cut it: ask for shorter"),
    ],
)
def test_advice_on_a_cut_answer_names_the_parameter_that_the_job_sets(parameters: str, advice: str) -> None:
    files = {"job.yaml": (JOB % parameters).encode(), "prompt.md": b"{{ body }}", "output.py": OUTPUT}
    verdict = Checker(JobDefinition("v", files)).check_message(Ending.TRUNCATED, False, '{"title": "a', {})
    assert isinstance(verdict, Failure)
    assert verdict.code == "truncated"
    assert verdict.message.startswith(f"the answer ended at the token limit; {advice}")

"""`compare` of job.yaml: what may stand there, and which limit counts for a field."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from support.ledger import JOB_YAML, OUTPUT

from nightmill.domain.errors import BrokenJobFolder
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.settings.gate_settings import Compare


def job(compare: str) -> JobDefinition:
    files = {"job.yaml": JOB_YAML % "notes" + compare, "prompt.md": "{{ body }}", "output.py": OUTPUT}
    return JobDefinition("notes", {name: text.encode() for name, text in files.items()})


def test_no_line_is_no_gate_and_an_empty_one_has_every_default() -> None:
    assert job("").job.compare is None
    assert job("compare: {}\n").job.compare == Compare(max_gone_share=0.05, max_accuracy_drop=0.02)


def test_a_line_with_nothing_behind_it_is_a_mistake() -> None:
    with pytest.raises(BrokenJobFolder, match="compare: is empty: write compare"):
        _ = job("compare:\n").job


def test_a_field_of_compare_is_one_of_output_py() -> None:
    assert job("compare: {fields: {pages: {measure: numeric, tolerance: 1}}}\n").mistakes() == []
    (mistake,) = job("compare: {fields: {page: {measure: numeric}}}\n").mistakes()
    assert mistake.key == "compare.fields.page"
    assert "output.py has no field 'page'" in mistake.problem
    assert "'pages'" in mistake.problem


def test_a_limit_of_a_field_counts_before_the_one_of_all() -> None:
    chosen = Compare.model_validate({"min_accuracy": 0.8, "fields": {"pages": {"min_accuracy": 0}, "title": {}}})
    assert [chosen.limit("min_accuracy", name) for name in ("pages", "title", "other")] == [0, 0.8, 0.8]
    assert chosen.limit("max_gone_share") == 0.05


@pytest.mark.parametrize(
    "wrong",
    [{"max_gone_share": 5}, {"slices": ["customer"]}, {"fields": {"pages": {"measure": "fuzzy"}}}, {"confidence": 1},
     {"min_slice_items": 0}, {"max_gone": 0.1}],
)  # fmt: skip
def test_what_is_no_setting_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Compare.model_validate(wrong)

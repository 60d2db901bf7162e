"""The page of the practice provider names everything that can be set on its fault board."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dev.practice_provider.faults import FaultPlan
from dev.practice_provider.settings import AnthropicSettings

PAGE = (Path(__file__).parents[2] / "dev" / "practice_provider" / "README.md").read_text("utf-8")


@pytest.mark.parametrize("field", [*FaultPlan.model_fields, *AnthropicSettings.model_fields])
def test_each_field_is_named(field: str) -> None:
    assert re.search(rf"`{field}s?`", PAGE)

"""`gaps` of job.yaml: which items may be missing from a result, and what readers see in their place."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from nightmill.jobs.settings.base import Config
from nightmill.jobs.settings.forms import FILL

# FailureClass without what no item ever ends with (tested).
GapClass = Literal["transient", "input", "output", "policy", "sink"]
Show = Literal["absent", "null_row", "previous"]
MOST_RULES = 50
_Word = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class GapRule(Config):
    """Gaps that are allowed, and what becomes of them. The first rule that fits an item counts; one without classes,
    codes and tenants fits all. Where there are rules, a gap that none of them fits is not allowed."""

    classes: tuple[GapClass, ...] = Field(
        default=(), description="Classes of failure, as docs/reference/failures.md has them."
    )
    codes: tuple[_Word, ...] = Field(default=(), description="Codes of failure: what dead-letters --count shows.")
    tenants: tuple[str, ...] = Field(default=(), description="Tenants; an empty text is the empty tenant.")
    show: Show = Field(
        default="absent",
        description="absent: no row. null_row: a row with the source's id, tenant and domain, all fields null. "
        "previous: the row that the view shows now (in by_interval: of this interval), or a null row where there is "
        "none. Each says why in `gap_reason`. In by_key an id that has a result goes on showing it.",
    )
    fill: Annotated[str, StringConstraints(pattern=FILL)] = Field(
        default="rerun",
        description="How the gap is to be filled: rerun, never, or by a person until a time in UTC (person by 17:00). "
        "It is recorded and shown.",
    )
    searchable: bool = Field(
        default=True, description="no: readers are told not to build a search index on a result with such a gap."
    )


class Gaps(Config):
    """Which items may lack an accepted answer when a batch is published. Without min_completion none may. completion =
    (accepted + reused) / (planned - excluded); an item in review is a gap."""

    min_completion: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="A batch below it is not published: 0.98 allows 2 of 100 items to be missing; null allows none.",
    )
    rules: tuple[GapRule, ...] = Field(
        default=(), max_length=MOST_RULES, description="Which gaps are allowed. Empty: any, and no row is shown."
    )

    @field_validator("rules")
    @classmethod
    def _each_rule_can_count(cls, value: tuple[GapRule, ...], info: ValidationInfo) -> tuple[GapRule, ...]:
        if value and info.data.get("min_completion", 0) is None:
            raise ValueError("say which gaps are allowed, and without gaps.min_completion none is: add it")
        for number, rule in enumerate(value[:-1], start=1):
            if not (rule.classes or rule.codes or rule.tenants):
                raise ValueError(f"rule {number} fits every gap, so the rules behind it never count: put it last")
        return value

    @property
    def contract(self) -> Literal["all_or_nothing", "min_completion"]:
        """In one word."""
        return "all_or_nothing" if self.min_completion is None else "min_completion"

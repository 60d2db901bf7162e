"""What the audit wants to know about each text."""

import re

from pydantic import BaseModel, ConfigDict, Field, field_validator


class Output(BaseModel):
    """The licence that a text grants, whose work it is, and the terms that matter most to a user."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spdx_id: str | None = Field(
        description="SPDX id of the work's own licence, such as MIT or LGPL-3.0-only; null where the text states none."
    )
    copyright_holders: list[str] = Field(
        description="Names in the copyright lines, as written, without years and addresses; at most 20."
    )
    copyright_years: list[int] = Field(
        description="Years named in the copyright lines, ascending. A range counts by its two ends (2012-2015 gives "
        "2012 and 2015), an open range by its start; years between are not listed."
    )
    grants_patent_licence: bool = Field(description="Whether the text itself contains a grant of patent rights.")
    disclaims_warranty: bool = Field(description="Whether the text itself disclaims warranties.")
    evidence: str = Field(
        description="An exact quotation from the text, at most 300 characters, that shows the licence; for a text that "
        "states none, its first line."
    )

    @field_validator("spdx_id")
    @classmethod
    def _one_id(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+-]{1,63}", value):
            raise ValueError("spdx_id must be a single id of the SPDX licence list, or null")
        if value in {"NOASSERTION", "NONE", "null"}:
            raise ValueError("use null where the text states no licence")
        return value

    @field_validator("copyright_years")
    @classmethod
    def _plausible_years(cls, value: list[int]) -> list[int]:
        if any(not 1900 <= year <= 2100 for year in value):
            raise ValueError("copyright_years must be four-digit years between 1900 and 2100")
        return value

    @field_validator("copyright_holders")
    @classmethod
    def _named_holders(cls, value: list[str]) -> list[str]:
        if any(not name.strip() for name in value):
            raise ValueError("copyright_holders must not hold blank names")
        return value

    @field_validator("evidence")
    @classmethod
    def _something_quoted(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("evidence must quote the text")
        return value

"""What a requirement line says."""

import re

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_CLAUSE = re.compile(r"(===|[<>=!~]=|[<>])[A-Za-z0-9.*+!_-]+")


class Output(BaseModel):
    """One requirement: what is needed, in which versions, and when."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    package: str = Field(description="The required distribution's name, normalised: lower case, single hyphens.")
    extras: list[str] = Field(description="The extras asked for, as written, sorted.")
    version_range: str = Field(description="Version clauses such as >=2,<3, sorted; empty where any version will do.")
    marker: str = Field(description="The environment condition, without outer brackets; empty where there is none.")
    is_optional: bool = Field(description="Whether the condition asks for an extra of the requiring distribution.")

    @field_validator("package")
    @classmethod
    def _normalised(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", value):
            raise ValueError("package must be a normalised name")
        return value

    @field_validator("version_range")
    @classmethod
    def _clauses(cls, value: str) -> str:
        if value and not all(_CLAUSE.fullmatch(clause) for clause in value.split(",")):
            raise ValueError("version_range must be clauses joined by commas, or empty")
        return value

    @model_validator(mode="after")
    def _condition_of_an_extra(self) -> "Output":
        if self.is_optional and "extra" not in self.marker:
            raise ValueError("is_optional needs a condition that names an extra")
        return self

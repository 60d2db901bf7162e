"""What stands between a result and its readers: `gold` and `approve` of job.yaml, and checks.yaml."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from nightmill.domain.config import Config, refuse_no_json
from nightmill.domain.forms import EXPECTATION

MOST_EXPECTATIONS = 500


class Gold(Config):
    """A query on the source connection: `source_id` and the right values of `fields`. An array means any of these."""

    query: str = Field(description="Returns source_id and a column for each of `fields`.")
    fields: tuple[str, ...] = Field(min_length=1, description="Fields of output.py whose accuracy is reported.")


class OnTimeout(StrEnum):
    """What becomes of a batch that nobody has answered for in time."""

    WAIT = "wait"
    REJECT = "reject"
    APPROVE = "approve"


class Approve(Config):
    """A person looks at the batch in Airflow and approves or rejects it. `approve: {}` takes every default."""

    timeout_h: float = Field(default=72, gt=0, le=8760, description="How long an answer is waited for (hours).")
    on_timeout: OnTimeout = Field(
        default=OnTimeout.WAIT,
        description="wait: the task fails, and clearing it asks again. reject: the batch ends REJECTED. approve: it is "
        "published.",
    )
    assigned_users: tuple[Annotated[str, StringConstraints(min_length=1, max_length=200)], ...] = Field(
        default=(),
        max_length=50,
        description="Who may answer, by the id that Airflow's auth manager gives them. Empty: whoever may answer for "
        "this DAG.",
    )


class Expectation(BaseModel):
    """One Great Expectations expectation: `type` is its class name, the other keys are its arguments."""

    model_config = ConfigDict(frozen=True, extra="allow")

    type: Annotated[str, StringConstraints(pattern=EXPECTATION)] = Field(
        description="A class name of gx.expectations, such as ExpectColumnValuesToNotBeNull."
    )

    @model_validator(mode="after")
    def _plain_arguments(self) -> Expectation:
        refuse_no_json(self.model_dump(), dates=str)  # as check_staging hashes them
        return self

    @property
    def arguments(self) -> dict[str, Any]:
        """Everything but the type."""
        return dict(self.model_extra or {})


class Checks(Config):
    """checks.yaml: what the staging table must hold before it is published."""

    expectations: tuple[Expectation, ...] = Field(default=(), max_length=MOST_EXPECTATIONS)

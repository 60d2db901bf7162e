"""What stands between a result and its readers: `gold`, `compare` and `approve` of job.yaml, and checks.yaml."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from nightmill.jobs.settings.base import Config, refuse_no_json
from nightmill.jobs.settings.forms import EXPECTATION

MOST_EXPECTATIONS = 500


class Gold(Config):
    """A query on the source connection: `source_id` and the right values of `fields`. An array means any of these."""

    query: str = Field(description="Returns source_id and a column for each of `fields`.")
    fields: tuple[str, ...] = Field(min_length=1, description="Fields of output.py whose accuracy is reported.")


class ComparedField(Config):
    """How one field of output.py is compared, and limits of its own in place of those of `compare`."""

    measure: Literal["exact", "normalised", "set_f1", "numeric", "date", "ignored"] | None = Field(
        default=None,
        description="exact, normalised (case, white space and outer punctuation do not count), set_f1 (lists), "
        "numeric, date, or ignored. null = by the field's type: set_f1 for lists other than vectors, numeric for "
        "fractions, else exact.",
    )
    tolerance: float = Field(
        default=0, ge=0, description="Values that differ by no more count as the same: numeric, or days of a date."
    )
    max_changed_share: float | None = Field(default=None, ge=0, le=1, description="Of this field.")
    min_accuracy: float | None = Field(default=None, ge=0, le=1, description="Of this field.")
    max_accuracy_drop: float | None = Field(default=None, ge=0, le=1, description="Of this field.")


class Compare(Config):
    """The gate `compare`: the result against what the view shows, and against the answers that `gold` knows. Each
    limit counts for the whole batch, by its number, and for every slice, by the bound of its interval, so that a slice
    of few items does not stop a batch by chance. Shares are from 0 to 1; null = no limit. See
    docs/guides/compare.md."""

    max_gone_share: float | None = Field(
        default=0.05, ge=0, le=1, description="Rows that readers see now and that this batch does not have."
    )
    max_changed_share: float | None = Field(
        default=None, ge=0, le=1, description="Of the rows that both have: those in which any field changed."
    )
    max_accuracy_drop: float | None = Field(
        default=0.02, ge=0, le=1, description="By how much any field's accuracy may fall; needs `gold`."
    )
    min_accuracy: float | None = Field(
        default=None, ge=0, le=1, description="The least accuracy of every field of `gold`."
    )
    max_citation_drop: float | None = Field(
        default=None, ge=0, le=1, description="By how much the share of rows with a citation may fall."
    )
    max_reject_rate: float | None = Field(
        default=None, ge=0, le=1, description="Items that gave up, of those that should have an answer."
    )
    max_review_rate: float | None = Field(default=None, ge=0, le=1, description="The same of items in review.")
    max_cost_increase: float | None = Field(
        default=None,
        ge=0,
        description="By what share an accepted item that was asked for may cost more than before: 0.2 = 20%.",
    )
    slices: tuple[Literal["tenant", "domain", "length"], ...] = Field(
        default=("tenant", "domain", "length"), description="What else the limits are applied to."
    )
    min_slice_items: int = Field(
        default=20, ge=1, description="Slices with fewer items to count are shown, and stop nothing."
    )
    confidence: float = Field(
        default=0.95, ge=0.5, lt=1, description="That no slice stops the batch by chance, all of a kind together."
    )
    fields: dict[str, ComparedField] = Field(default_factory=dict, description="Fields of output.py by name.")

    def limit(self, name: str, field: str | None = None) -> float | None:
        """A limit as it counts for a field, or for all of them."""
        own = getattr(self.fields.get(field), name, None) if field is not None else None
        value: float | None = getattr(self, name) if own is None else own
        return value


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
    revoke_rejected: bool = Field(
        default=False,
        description="When a person rejects the batch, its accepted answers are not reused: the next run asks for them "
        "again, and pays. Answers that readers see stay.",
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

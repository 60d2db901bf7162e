"""job.yaml: `publish`, what readers of the view see."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, field_validator

from nightmill.jobs.settings.base import Config, Identifier

OUR_VIEWS = frozenset({"published_views", "published_intervals"})  # in schema results, for readers


class PublishMode(StrEnum):
    """What a view shows of the batches that were published."""

    REPLACE = "replace"
    BY_INTERVAL = "by_interval"
    BY_KEY = "by_key"


class Publish(Config):
    """Which view shows the results, in schema `results`, and which of them."""

    view: Identifier = Field(
        description="Lower-case letters, digits and _, at most 48; in schema results. One job's only."
    )
    mode: PublishMode = Field(
        default=PublishMode.REPLACE,
        description="What the view shows: replace = the newest batch; by_interval = the newest batch of every data "
        "interval; by_key = the newest accepted row of every source id; ids that a run does not carry stay as shown.",
    )
    deleted: str | None = Field(
        default=None,
        min_length=1,
        description="In by_key: a boolean field of output.py, or a boolean column of the source query. Where it is "
        "true, the id goes from the view, and a run of an older interval does not bring it back. A row that the "
        "source query marks is never sent.",
    )
    max_loss: float = Field(
        default=0.5, ge=0, le=1, description="The share of the rows shown that a run may lose: more stops at compare."
    )
    keep_intervals: int | None = Field(
        default=None, ge=1, description="In by_interval: the newest so many intervals are shown; null = all."
    )

    @field_validator("view")
    @classmethod
    def _no_name_of_ours(cls, value: str) -> str:
        if value in OUR_VIEWS:
            raise ValueError(f"nightmill has a view results.{value} itself: give this one another name")
        return value

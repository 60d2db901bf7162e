"""`retry`, `repair` and `breaker` in job.yaml: what follows a failure."""

from __future__ import annotations

from pydantic import Field

from nightmill.domain.failures import EndedAs
from nightmill.jobs.settings.base import DAY, Config


class Retry(Config):
    """How often an item is asked for again, and the wait before it: drawn between 0 and a time that doubles with each
    failure, so that what failed together does not come back together."""

    max_attempts: int = Field(
        default=5, ge=1, le=10, description="Attempts per item, the first one included, whatever they failed with."
    )
    transient: int = Field(
        default=3,
        ge=0,
        le=9,
        description="Attempts that follow failures which pass by themselves: rate limits, server errors, lost or "
        "expired lines.",
    )
    base_delay_s: float = Field(
        default=30,
        ge=0,
        le=7 * DAY,
        description="The longest wait after a first failure (seconds); doubles with each further one.",
    )
    max_delay_s: float = Field(default=1800, ge=0, le=7 * DAY, description="The longest wait of all (seconds).")


class Repair(Config):
    """What follows an answer that is not accepted. A code fence around it, or JSON written as a JSON string, is taken
    off without asking again."""

    attempts: int = Field(
        default=1,
        ge=0,
        le=9,
        description="Requests per item that show the model its rejected answer and what is wrong with it; "
        "retry.max_attempts bounds them too.",
    )
    max_output_tokens_cap: int | None = Field(
        default=None,
        ge=1,
        description="An answer that was cut off at its token limit is asked for again with twice the limit, up to "
        "this one. null = twice the limit in job.yaml.",
    )
    exhausted: EndedAs = Field(
        default="dead_lettered",
        description="What becomes of an item whose last answer is not accepted either. in_review keeps it apart for a "
        "person, with its answer's place; it counts as a gap until then, and is not asked for again.",
    )


class Breaker(Config):
    """When a batch stops because its requests fail for one and the same reason. Nothing is given up by that: what
    failed is sent again once a person has cleared the task."""

    requests: int | None = Field(
        default=50,
        ge=10,
        le=10_000,
        description="Looked at once so many requests have settled, or all where the batch has fewer. null = never.",
    )
    failing_share: float = Field(
        default=0.8,
        gt=0,
        le=1,
        description="The batch stops if at least this share of them failed with one code, or if none was accepted.",
    )
    pilot_items: int = Field(
        default=100,
        ge=10,
        le=10_000,
        description="So many items go out alone at first, while the contract has no accepted answer yet.",
    )
    pilot_above_items: int | None = Field(
        default=2_000, ge=0, description="Only in a batch that has more items than this to send. null = never."
    )

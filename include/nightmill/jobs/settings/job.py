"""A job folder's configuration: job.yaml as frozen models. Every default stands here, or in the module that
it comes from, and only there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from nightmill.jobs.filters import Filter, FilterName
from nightmill.jobs.settings.base import (
    CONNECTION_HELP,
    DAY,
    DAYS,
    Config,
    ConnectionId,
    Tag,
    known_zone,
)
from nightmill.jobs.settings.dag_settings import DagSettings
from nightmill.jobs.settings.gap_settings import Gaps
from nightmill.jobs.settings.gate_settings import Approve, Compare, Gold
from nightmill.jobs.settings.provider_settings import Provider
from nightmill.jobs.settings.publish_settings import Publish
from nightmill.jobs.settings.retry_settings import Breaker, Repair, Retry


class SourceColumns(Config):
    """Which columns of the query play which part. All other columns are values for prompt.md, where JSON columns and
    arrays are written as JSON and a template can reach into them: `{{ meta.title }}`."""

    id: str = Field(description="Names a source document; never blank, and unique within the query's result.")
    text: str = Field(description="The document itself; a blank one is excluded without a call.")
    version: str | None = Field(
        default=None,
        description="Changes whenever any value used by prompt.md changes. null = the content hash is the version.",
    )
    tenant: str | None = Field(
        default=None, description="Results are never shared across tenants. null counts as the empty tenant."
    )
    domain: str | None = Field(default=None, description="A slice for reports, such as the kind of document.")
    required: str | None = Field(
        default=None,
        description="A boolean: where it is true, a missing answer is never allowed, whatever `gaps` says. null counts "
        "as false.",
    )


class Source(Config):
    """Where the rows come from. Bound parameters: %(data_interval_start)s, %(data_interval_end)s, and the filters."""

    kind: Literal["postgres"] = Field(default="postgres", description="The kind of database.")
    conn_id: ConnectionId = Field(description=CONNECTION_HELP)
    query: str = Field(description="One SELECT; values are bound, never pasted.")
    columns: SourceColumns
    filters: dict[FilterName, Filter] = Field(
        default_factory=dict, description="Choices of the trigger form by name; the query uses each as %(NAME)s."
    )
    statement_timeout_s: int = Field(
        default=3600, ge=1, le=2_147_483, description="The query is ended after this (seconds)."
    )


class Transform(Config):
    """How a source row becomes a request: part of every idempotency key. Raise `version` to process all anew."""

    name: str = Field(default="whole_document", description="One request per source row.")
    version: str = Field(default="1", description="Text, so in quotes. A new one asks again for every document.")


class Shards(Config):
    """How the batch is cut."""

    count: int | None = Field(default=None, ge=1, le=256, description="null = one per target_tokens.")
    target_tokens: int = Field(default=2_000_000, ge=1, description="Prompt tokens per shard, about.")


class CitationRule(Config):
    """The answer's field `quote` must be a span of the source column `source`. White space, case, punctuation and
    markup may differ; a word, number, amount or sign may not. See docs/guides/citations.md."""

    quote: str = Field(description="The field of output.py that holds the quotation, or a list of them.")
    source: str = Field(description="The column of the source query that it is quoted from.")
    min_score: float = Field(
        default=90,
        ge=0,
        le=100,
        description="The least share of letters, in percent, that must be as in the source; the others must look "
        "misread. 100 = none misread.",
    )


class EmbeddingRule(Config):
    """What each vector of an embedding job must be. That its numbers are finite is checked in any case."""

    dimensions: int = Field(
        ge=1, description="Numbers in each vector. Without this rule provider.parameters.dimensions counts."
    )


class Validation(Config):
    """Checks on each answer beyond its schema."""

    citations: tuple[CitationRule, ...] = Field(default=(), description="Quotations that must stand in the source.")
    embedding: EmbeddingRule | None = Field(default=None, description="Embedding jobs only: what each vector must be.")
    time_zone: str | None = Field(
        default=None,
        max_length=100,
        description="The zone of times that an answer gives without one, by its IANA name (UTC, Europe/Berlin). null = "
        "such times are not accepted.",
    )

    @field_validator("time_zone")
    @classmethod
    def _a_zone_is_known(cls, value: str | None) -> str | None:
        return None if value is None else known_zone(value)


class DeadLetterLimits(Config):
    """When the dead letters of a batch are worth an alert: report, status and doctor then say so. Nothing stops."""

    max_age_h: float | None = Field(default=None, gt=0, description="Hours since the oldest of them gave up.")
    max_count: int | None = Field(default=None, ge=0, description="How many are tolerated.")


class Maintenance(Config):
    """What nightmill_maintenance does with this job's batches. A batch that the view shows is never touched."""

    abandoned_after_s: float = Field(
        default=7 * DAY,
        ge=3600,
        le=3650 * DAY,
        description="An open run of which nothing was seen for so long is cancelled (seconds).",
    )
    keep_published: int = Field(
        default=3, ge=1, description="The newest published batches are kept whole, the one that is shown included."
    )
    evidence_days: float = Field(
        default=30, ge=1, le=DAYS, description="Raw result files of ended batches are deleted after this (days)."
    )
    batch_days: float = Field(
        default=90,
        ge=1,
        le=DAYS,
        description="Rows, items, payloads and dead letters of other ended batches are deleted after this (days). The "
        "newest one is kept, so that its dead letters can be looked at and replayed.",
    )
    log_days: float = Field(
        default=365,
        ge=1,
        le=DAYS,
        description="What maintenance did to the job's batches is forgotten after this (days).",
    )


_EMPTY = {
    "approve": "is empty: write approve: {} to ask a person, or remove the line to ask nobody",
    "compare": "is empty: write compare: {} for the default limits, or remove the line to skip it",
}


class Job(Config):
    """job.yaml. The folder's name is the job's name."""

    GONE: ClassVar[Mapping[str, str]] = {
        "quality": "Write `gaps: {min_completion: 0.98}` instead of `quality: {min_completion_rate: 0.98}`.",
    }
    description: str = Field(description="What the job is for; Airflow shows it.")
    # Airflow stores all DAGs of a file in one transaction: what its columns cannot hold would stop every job.
    owner: str = Field(default="nightmill", max_length=200, description="Airflow's owner of the tasks.")
    tags: tuple[Tag, ...] = Field(default=(), max_length=50, description="Airflow's tags of the DAG.")
    source: Source
    transform: Transform = Transform()
    provider: Provider
    shards: Shards = Shards()
    validation: Validation = Validation()
    retry: Retry = Retry()
    repair: Repair = Repair()
    breaker: Breaker = Breaker()
    gaps: Gaps = Gaps()
    dead_letters: DeadLetterLimits = DeadLetterLimits()
    gold: Gold | None = None
    compare: Compare | None = None
    approve: Approve | None = None
    maintenance: Maintenance = Maintenance()
    publish: Publish
    schedule: str | None = Field(
        default=None,
        max_length=100,
        description='Cron in dag.timezone, such as "0 2 * * *"; null = by hand, or after assets (dag.after_assets).',
    )
    dag: DagSettings = DagSettings()

    @field_validator("approve", "compare", mode="before")
    @classmethod
    def _asks_or_does_not(cls, value: Any, info: ValidationInfo) -> Any:
        """YAML takes a key with nothing behind it for null."""
        if value is None:
            raise ValueError(_EMPTY[info.field_name or ""])
        return value


# nightmill's own DAGs, which are named nightmill_<name> like those of jobs.
OPERATIONS = frozenset({"cancel", "capacity_guard", "maintenance", "publish", "replay", "rollback"})
JOB_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}\Z")

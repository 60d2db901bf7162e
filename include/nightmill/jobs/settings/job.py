"""A job folder's configuration: job.yaml as frozen models. Every default stands here, or in the module that
it comes from, and only there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from nightmill.domain.failures import EndedAs
from nightmill.jobs.filters import Filter, FilterName
from nightmill.jobs.settings.base import DAY, DAYS, Config, ConnectionId, Tag, known_zone, refuse_no_json
from nightmill.jobs.settings.dag_settings import DagSettings
from nightmill.jobs.settings.forms import DURATION
from nightmill.jobs.settings.gap_settings import Gaps
from nightmill.jobs.settings.gate_settings import Approve, Compare, Gold
from nightmill.jobs.settings.publish_settings import Publish

CHAT: Literal["chat"] = "chat"
EMBEDDINGS: Literal["embeddings"] = "embeddings"
_CONNECTION = "The id of an Airflow connection (letters, digits, _ . -), not its address."
RESERVES = ("max_completion_tokens", "max_tokens")  # parameters that limit an answer's tokens, by precedence


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
    conn_id: ConnectionId = Field(description=_CONNECTION)
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


class ProviderLimits(Config):
    """Tighter limits than the adapter's own, for accounts that have them. Tokens are prompt tokens."""

    requests_per_file: int | None = Field(default=None, ge=1, description="Requests in one input file.")
    bytes_per_file: int | None = Field(default=None, ge=1024, description="Size of one input file.")
    enqueued_prompt_tokens: int | None = Field(
        default=None, ge=1, description="Prompt tokens that may wait at the provider at a time; shards wait for room."
    )


class Provider(Config):
    """Which model answers, through which Batch API, with which request parameters."""

    adapter: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,62}$")] = Field(
        default="openai",
        description="Which Batch API the provider speaks: openai, anthropic, or an adapter that is installed. See "
        "docs/guides/providers.md.",
    )
    conn_id: ConnectionId = Field(description=_CONNECTION)
    model: str = Field(description="The model's name as the provider lists it.")
    task: Literal["chat", "embeddings"] = Field(
        default=CHAT,
        description="What the model is asked for. embeddings makes it an embedding job: prompt.md is one message, "
        " its text is what is embedded, and output.py has one field, `vector: list[float]`.",
    )
    max_output_tokens: int | None = Field(
        default=None,
        ge=1,
        description="The most tokens of each answer; each provider gets it under its own name. null = as a parameter "
        "says.",
    )
    parameters: dict[str, Any] = Field(
        default_factory=dict,
        description="Goes into each request as it is: temperature, seed and the like; "
        "dimensions for an embedding job. What buys answers that nobody reads (n above 1, logprobs, tools, audio, "
        "store) is refused.",
    )
    context_window_tokens: int | None = Field(default=None, ge=1, description="Longer items are not sent.")
    completion_window: Annotated[str, StringConstraints(pattern=DURATION)] = Field(
        default="24h", description="How long the provider may take, as it writes it: a number with its unit."
    )
    limits: ProviderLimits = ProviderLimits()
    poll_interval_s: float = Field(
        default=30, ge=1, le=DAY, description="How often waiting batches are looked at (seconds)."
    )
    create_timeout_s: float = Field(
        default=60, gt=0, le=DAY, description="How long one call may wait for bytes (seconds)."
    )
    quiet_period_s: float | None = Field(
        default=None,
        ge=0,
        le=7 * DAY,
        description="After an unanswered create, absence at the provider counts only after this (seconds). null = as "
        "long as the adapter asks for.",
    )
    results_grace_s: float = Field(
        default=900,
        ge=0,
        le=DAY,
        description="How long to wait for answers that an ended batch owes, before they are bought again (seconds).",
    )
    unknown_status_s: float = Field(
        default=6 * 3600,
        ge=0,
        le=2 * DAY,
        description="How long a batch with an unknown status is polled before a person is asked (seconds).",
    )
    expected_turnaround_s: float = Field(default=3600, gt=0, le=30 * DAY, description="For estimates only.")

    @field_validator("parameters")
    @classmethod
    def _no_reserved_parameters(cls, value: dict[str, Any]) -> dict[str, Any]:
        taken = sorted({"model", "messages", "input", "response_format", "stream"} & value.keys())
        if taken:
            raise ValueError(f"nightmill sets {', '.join(taken)} itself; remove it from provider.parameters")
        refuse_no_json(value)
        return value

    @property
    def embeds(self) -> bool:
        """Whether the model answers with a vector instead of a message."""
        return self.task == EMBEDDINGS

    @property
    def output_reserve_tokens(self) -> int:
        """Tokens that each answer may take; 0 when nothing limits them."""
        if self.max_output_tokens is not None and not self.embeds:
            return self.max_output_tokens
        return int(self.parameters[self.reserve_parameter]) if self.reserve_parameter else 0

    @property
    def reserve_parameter(self) -> str | None:
        """The request parameter that limits an answer's tokens, where a job limits them so."""
        return next((name for name in RESERVES if isinstance(self.parameters.get(name), int)), None)

    @property
    def limited_by(self) -> str | None:
        """The key of job.yaml that limits an answer's tokens."""
        if self.max_output_tokens is not None:
            return "provider.max_output_tokens"
        return None if self.reserve_parameter is None else f"provider.parameters.{self.reserve_parameter}"


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
    max_completion_tokens_cap: int | None = Field(
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

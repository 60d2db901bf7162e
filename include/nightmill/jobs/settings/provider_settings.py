"""`provider` in job.yaml: which model is asked, by whom, and how."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator

from nightmill.jobs.settings.adapters import BUILT_IN
from nightmill.jobs.settings.base import CONNECTION_HELP, DAY, Config, ConnectionId, refuse_no_json
from nightmill.jobs.settings.forms import DURATION

CHAT: Literal["chat"] = "chat"
EMBEDDINGS: Literal["embeddings"] = "embeddings"
RESERVES = ("max_completion_tokens", "max_tokens")  # parameters that limit an answer's tokens, by precedence


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
        description="Which Batch API the provider speaks: the name of an adapter. See docs/guides/providers.md.",
        examples=sorted(BUILT_IN),
    )
    conn_id: ConnectionId = Field(description=CONNECTION_HELP)
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

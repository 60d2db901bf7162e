"""What can be set when the simulator starts. Defaults are stated here and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

MIB = 1024 * 1024


class AnthropicSettings(BaseModel):
    """What is only Anthropic's. The limits are the documented ones: 100,000 requests or 256 MB in a create, results
    until 29 days after it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests_per_batch: int = Field(default=100_000, gt=0)
    bytes_per_batch: int = Field(default=256 * MIB, gt=0)
    queued_requests: int | None = None  # in all unfinished batches of all workspaces; None = no limit
    retry_after_s: int = Field(default=60, ge=0)  # what a create hears that finds the queue full
    archive_s: float = Field(default=29 * 24 * 3600.0, gt=0)  # from create until the results are gone
    workspace: str = "wrkspc_practice"  # of keys that are not named below
    workspaces: dict[str, tuple[str, ...]] = Field(default_factory=dict)  # by key; these keys are accepted too


class Settings(BaseModel):
    """One simulator. Durations are seconds of wall-clock time.

    The limits are OpenAI's documented ones: 50,000 requests and 200 MB in a batch input file, 50,000 embedding inputs
    in a batch, a window of 24 hours.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = Field(default=0, ge=0, le=65535)
    api_key: str | None = None  # None accepts every key, and none at all
    batch_s: float = Field(default=12.0, ge=0)  # from create to end; 0 = as fast as the machine allows
    cancel_s: float = Field(default=0.2, ge=0)  # how long a batch stays `cancelling`
    completion_window_s: float = Field(default=24 * 3600.0, gt=0)  # what "24h" means here; short values make expiry
    requests_per_file: int = Field(default=50_000, gt=0)
    embedding_inputs_per_batch: int = Field(default=50_000, gt=0)
    bytes_per_file: int = Field(default=200 * MIB, gt=0)
    enqueued_tokens: int | None = None  # prompt tokens of all unfinished batches of one model; None = no limit
    enqueued_tokens_by_model: dict[str, int] = Field(default_factory=dict)
    count_tokens: Literal["exact", "approx"] = "exact"  # approx: four characters are a token (for benchmarks)
    seed: int = 0  # of the order in which a batch's lines are executed and come back
    workers: int = Field(default=4, gt=0)  # threads that execute batches
    gold_path: Path | None = None
    upstream_url: str | None = None  # base URL of any OpenAI-compatible server, with its /v1
    upstream_key: str | None = None
    upstream_timeout_s: float = Field(default=600.0, gt=0)
    anthropic: AnthropicSettings = AnthropicSettings()
    faults: str | None = None  # a fault plan as JSON, taken once: a restart with the same text keeps what is left of it

    def enqueued_limit(self, model: str) -> int | None:
        return self.enqueued_tokens_by_model.get(model, self.enqueued_tokens)

"""What differs between the vendors that the practice provider speaks, for tests that run over all of them."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from dev.practice_provider.odd_answers import Odd
from dev.practice_provider.vendors.anthropic.odd_lines import ODD_KINDS
from support.pipeline import Pipeline

_LIMIT = "  parameters: {max_completion_tokens: 50}\n"


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor: its adapter's name, its routes as the fault board names them, the odd answers that it gives, and
    whether a batch says what all of it cost."""

    adapter: str
    create: str
    poll: str
    content: str
    odd_kinds: Set[str]
    reports_usage: bool = True


OPENAI = Vendor(
    "openai",
    "POST /v1/batches",
    "GET /v1/batches/{batch_id}",
    "GET /v1/files/{file_id}/content",
    frozenset(Odd) - {Odd.SPLIT_TEXT, Odd.UNKNOWN_BLOCK, Odd.UNKNOWN_RESULT, Odd.PAUSED},
)
ANTHROPIC = Vendor(
    "anthropic",
    "POST /v1/messages/batches",
    "GET /v1/messages/batches/{batch_id}",
    "GET /v1/messages/batches/{batch_id}/results",
    ODD_KINDS,
    reports_usage=False,
)
VENDORS = {one.adapter: one for one in (OPENAI, ANTHROPIC)}


def speak(pipeline: Pipeline, vendor: Vendor) -> None:
    """Let the job of a pipeline go to another vendor."""
    if vendor is not OPENAI:
        pipeline.edit("job.yaml", _LIMIT, f"  adapter: {vendor.adapter}\n  max_output_tokens: 50\n")


def spoken(pipeline: Pipeline) -> Vendor:
    """The vendor that the job goes to."""
    return VENDORS[pipeline.live.job.provider.adapter]

"""Anthropic: Messages and Message Batches, without beta headers.

The addresses begin with /v1/messages, so they live beside OpenAI's on one port. Only /v1/models is at both: a call
with the header anthropic-version gets Anthropic's answer.
"""

from __future__ import annotations

from starlette.routing import BaseRoute

from dev.practice_provider.routes.context import Face, Simulator
from dev.practice_provider.vendors.anthropic import realtime
from dev.practice_provider.vendors.anthropic.batches import Batches
from dev.practice_provider.vendors.anthropic.face import AnthropicFace
from dev.practice_provider.vendors.anthropic.message_batches import MessageBatches
from dev.practice_provider.vendors.anthropic.vendor import Anthropic

__all__ = ["Anthropic", "spoken"]


def spoken(simulator: Simulator) -> tuple[Face, list[BaseRoute]]:
    face = AnthropicFace(simulator.settings.api_key, simulator.settings.anthropic)
    batches = Batches(MessageBatches(simulator.ledger), face)
    return face, [*batches.routes(simulator), *realtime.routes(simulator, face)]

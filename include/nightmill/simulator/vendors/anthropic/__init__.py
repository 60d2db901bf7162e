"""Anthropic: Messages and Message Batches, without beta headers.

The addresses begin with /v1/messages, so they live beside OpenAI's on one port. Only /v1/models is at both: a call
with the header anthropic-version gets Anthropic's answer.
"""

from __future__ import annotations

from starlette.routing import BaseRoute

from nightmill.simulator.routes.context import Face, Simulator
from nightmill.simulator.vendors.anthropic import realtime
from nightmill.simulator.vendors.anthropic.batches import Batches
from nightmill.simulator.vendors.anthropic.face import AnthropicFace
from nightmill.simulator.vendors.anthropic.message_batches import MessageBatches
from nightmill.simulator.vendors.anthropic.vendor import Anthropic

__all__ = ["Anthropic", "spoken"]


def spoken(simulator: Simulator) -> tuple[Face, list[BaseRoute]]:
    face = AnthropicFace(simulator.settings.api_key, simulator.settings.anthropic)
    batches = Batches(MessageBatches(simulator.ledger), face)
    return face, [*batches.routes(simulator), *realtime.routes(simulator, face)]

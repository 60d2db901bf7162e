"""OpenAI: Files, Batches, Chat Completions and Embeddings."""

from __future__ import annotations

from starlette.routing import BaseRoute

from nightmill.simulator.routes.context import Face, Simulator
from nightmill.simulator.vendors.openai import batches, files, realtime
from nightmill.simulator.vendors.openai.face import OpenAIFace
from nightmill.simulator.vendors.openai.vendor import OpenAI

__all__ = ["OpenAI", "spoken"]


def spoken(simulator: Simulator) -> tuple[Face, list[BaseRoute]]:
    face = OpenAIFace(simulator.settings.api_key)
    return face, [one for group in (files, batches, realtime) for one in group.routes(simulator, face)]

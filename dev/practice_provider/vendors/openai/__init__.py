"""OpenAI: Files, Batches, Chat Completions and Embeddings."""

from __future__ import annotations

from starlette.routing import BaseRoute

from dev.practice_provider.routes.context import Face, Simulator
from dev.practice_provider.vendors.openai import batches, files, realtime
from dev.practice_provider.vendors.openai.face import OpenAIFace
from dev.practice_provider.vendors.openai.vendor import OpenAI

__all__ = ["OpenAI", "spoken"]


def spoken(simulator: Simulator) -> tuple[Face, list[BaseRoute]]:
    face = OpenAIFace(simulator.settings.api_key)
    return face, [one for group in (files, batches, realtime) for one in group.routes(simulator, face)]

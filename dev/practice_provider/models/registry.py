"""From model names to models: `<kind>-<number>` for the built-in kinds, `upstream/<name>` for another server."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from dev.practice_provider.models.echo import EchoModel
from dev.practice_provider.models.gold import GoldModel
from dev.practice_provider.models.hashed import HashedEmbedding
from dev.practice_provider.models.licence_reader import LicenceReader
from dev.practice_provider.models.port import EmbeddingModel, Model
from dev.practice_provider.models.requirement_reader import RequirementReader
from dev.practice_provider.models.upstream import UpstreamModel
from dev.practice_provider.models.word_vectors import PACKAGE, WordVectors
from dev.practice_provider.settings import Settings
from dev.practice_provider.tokens import Count

_NAME = re.compile(r"(?P<kind>[a-z-]+)-\d+")
_LICENCE_RULES = "dev.practice_provider.models.licence"


class ModelRegistry:
    """Chat models `echo`, `requirement-reader`, `licence-reader`, and `gold` when a replay file is given; `embed` for
    embeddings, and `wordllama` where its package is installed."""

    def __init__(self, settings: Settings, count: Count) -> None:
        self._chat: dict[str, Callable[[], Model]] = {
            "echo": partial(EchoModel, count, settings.count_tokens),
            "requirement-reader": RequirementReader,
        }
        if settings.gold_path is not None:
            self._chat["gold"] = partial(GoldModel, settings.gold_path)
        if find_spec(_LICENCE_RULES) is not None:
            self._chat["licence-reader"] = LicenceReader
        self._embedding: dict[str, EmbeddingModel] = {"embed": HashedEmbedding()}
        if find_spec(PACKAGE) is not None:
            self._embedding[PACKAGE] = WordVectors()
        self._upstream = None
        if settings.upstream_url is not None:
            self._upstream = UpstreamModel(settings.upstream_url, settings.upstream_key, settings.upstream_timeout_s)
        self._made: dict[str, Model] = {}

    def chat(self, name: str) -> Model | None:
        """The model behind a name, made at its first use; None for an unknown name."""
        if name.startswith("upstream/"):
            return self._upstream
        kind = _kind(name)
        if kind not in self._made and kind in self._chat:
            self._made[kind] = self._chat[kind]()
        return self._made.get(kind)

    def embedding(self, name: str) -> EmbeddingModel | None:
        return self._upstream if name.startswith("upstream/") else self._embedding.get(_kind(name))

    def names(self) -> list[str]:
        """What GET /v1/models lists, one name of each kind; an upstream's own models are not asked for."""
        return sorted(f"{kind}-1" for kind in (*self._chat, *self._embedding))

    def close(self) -> None:
        if self._upstream is not None:
            self._upstream.close()


def _kind(name: str) -> str:
    found = _NAME.fullmatch(name)
    return found["kind"] if found else ""

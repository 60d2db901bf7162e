"""The adapters that the conformance suite runs over, and how each is pointed at the practice provider."""

from __future__ import annotations

from dataclasses import dataclass

from dev.practice_provider.server import RunningSimulator
from nightmill.providers.connection import ProviderConnection, RequestSpec

SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Case:
    """One adapter. `model` is one that the practice provider answers in its API."""

    adapter: str
    model: str = "echo-1"
    task: str = "chat"

    def connection(self, practice: RunningSimulator, key: str = "sk-night", conn_id: str = "llm") -> ProviderConnection:
        return ProviderConnection(conn_id, practice.base_url, key, max_retries=1)

    @property
    def spec(self) -> RequestSpec:
        return RequestSpec(self.model, self.task, response_schema=SCHEMA, max_output_tokens=500)


CASES = [Case("openai"), Case("anthropic")]

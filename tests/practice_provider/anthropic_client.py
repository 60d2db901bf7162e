"""The real Anthropic SDK against the simulator, with what the tests say often."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

import anthropic
import httpx
from anthropic.types.messages import MessageBatch

from dev.practice_provider.server import RunningSimulator


def request(custom_id: str, text: str = "some text", model: str = "echo-1", **params: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    return {"custom_id": custom_id, "params": {"model": model, "max_tokens": 1000, "messages": messages} | params}


def requests(count: int) -> list[dict[str, Any]]:
    return [request(f"r-{number}", f"document {number}") for number in range(count)]


class AnthropicClient:
    """`sdk` never retries."""

    def __init__(self, simulator: RunningSimulator, api_key: str = "any", **more: Any) -> None:
        self.simulator = simulator
        url = simulator.control_url
        self.sdk = anthropic.Anthropic(base_url=url, api_key=api_key, max_retries=0, timeout=30, **more)
        headers = {"anthropic-version": "2023-06-01", "x-api-key": api_key}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=30)

    @property
    def batches(self) -> Any:
        return self.sdk.messages.batches

    def close(self) -> None:
        self.sdk.close()
        self.http.close()

    def submit(self, asked: Iterable[Any], **more: Any) -> MessageBatch:
        batch: MessageBatch = self.batches.create(requests=list(asked), **more)
        return batch

    def wait(self, batch_id: str, timeout_s: float = 20) -> MessageBatch:
        deadline = time.monotonic() + timeout_s
        while True:
            batch: MessageBatch = self.batches.retrieve(batch_id)
            if batch.processing_status == "ended":
                return batch
            assert time.monotonic() < deadline, f"still {batch.processing_status}"
            time.sleep(0.02)

    def wait_for_executions(self, count: int, timeout_s: float = 20) -> None:
        """The batch itself counts nothing before its end: the books do."""
        deadline = time.monotonic() + timeout_s
        while (executed := self.books()["executed"]) < count:
            assert time.monotonic() < deadline, f"only {executed}"
            time.sleep(0.02)

    def run(self, asked: Iterable[Any], **more: Any) -> MessageBatch:
        return self.wait(self.submit(asked, **more).id)

    def raw_results(self, batch_id: str) -> bytes:
        answer = self.http.get(f"/v1/messages/batches/{batch_id}/results").raise_for_status()
        return answer.content

    def results(self, batch_id: str) -> list[dict[str, Any]]:
        data = self.raw_results(batch_id)
        assert data.endswith(b"\n")
        return [json.loads(line) for line in data.split(b"\n")[:-1]]

    def by_id(self, batch_id: str) -> dict[str, dict[str, Any]]:
        return {line["custom_id"]: line["result"] for line in self.results(batch_id)}

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The result of a batch of one request."""
        [line] = self.results(self.run([asked]).id)
        result: dict[str, Any] = line["result"]
        return result

    def books(self) -> dict[str, Any]:
        return self.simulator.books()

    def faults(self, **plan: Any) -> None:
        self.http.post("/_faults", json=plan).raise_for_status()

    def fault_log(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.http.get("/_faults/log").raise_for_status().json()["data"]
        return found


def counts(batch: MessageBatch) -> dict[str, int]:
    """The counts that are not 0."""
    return {name: n for name, n in batch.request_counts.model_dump().items() if n}

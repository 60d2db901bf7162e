"""The real SDK against the simulator, with what the tests say often."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

import httpx
import openai
from openai.types import Batch

from dev.practice_provider.server import RunningSimulator

CHAT = "/v1/chat/completions"
TERMINAL = ("completed", "failed", "expired", "cancelled")


def chat_line(custom_id: str, text: str = "some text", model: str = "echo-1", **body: Any) -> dict[str, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": text}]} | body
    return {"custom_id": custom_id, "method": "POST", "url": CHAT, "body": body}


def chat_lines(count: int, model: str = "echo-1") -> list[dict[str, Any]]:
    return [chat_line(f"r-{number}", f"document {number}", model) for number in range(count)]


def jsonl(lines: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


class Client:
    """`sdk` never retries."""

    simulator: RunningSimulator

    def __init__(self, base_url: str, api_key: str = "any") -> None:
        self.base_url = base_url
        self.sdk = openai.OpenAI(base_url=base_url, api_key=api_key, max_retries=0, timeout=30)
        self.http = httpx.Client(base_url=base_url.removesuffix("/v1"), timeout=30)

    def close(self) -> None:
        self.sdk.close()
        self.http.close()

    def upload(self, data: bytes, name: str = "input.jsonl") -> str:
        return self.sdk.files.create(file=(name, data), purpose="batch").id

    def create(self, file_id: str, endpoint: Any = CHAT, **more: Any) -> Batch:
        return self.sdk.batches.create(input_file_id=file_id, endpoint=endpoint, completion_window="24h", **more)

    def submit(self, lines: Sequence[Any] | bytes, endpoint: str = CHAT, **more: Any) -> Batch:
        data = lines if isinstance(lines, bytes) else jsonl(lines)
        return self.create(self.upload(data), endpoint, **more)

    def wait(self, batch_id: str, *statuses: str, timeout_s: float = 20) -> Batch:
        deadline = time.monotonic() + timeout_s
        while True:
            batch = self.sdk.batches.retrieve(batch_id)
            if batch.status in (statuses or TERMINAL):
                return batch
            assert time.monotonic() < deadline, f"still {batch.status}"
            assert batch.status not in TERMINAL, f"ended as {batch.status}"
            time.sleep(0.02)

    def wait_for_lines(self, batch_id: str, count: int, timeout_s: float = 20) -> Batch:
        deadline = time.monotonic() + timeout_s
        while True:
            batch = self.sdk.batches.retrieve(batch_id)
            assert batch.request_counts is not None
            if batch.request_counts.completed + batch.request_counts.failed >= count:
                return batch
            assert time.monotonic() < deadline, f"only {batch.request_counts}"
            time.sleep(0.02)

    def run(self, lines: Sequence[Any] | bytes, endpoint: str = CHAT, **more: Any) -> Batch:
        return self.wait(self.submit(lines, endpoint, **more).id)

    def result_lines(self, file_id: str | None) -> list[dict[str, Any]]:
        assert file_id is not None
        data = self.sdk.files.content(file_id).read()
        assert data.endswith(b"\n")
        return [json.loads(line) for line in data.split(b"\n")[:-1]]

    def books(self, summary: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get("/_books", params={"summary": int(summary)}).raise_for_status().json()
        return found

    def faults(self, **plan: Any) -> None:
        self.http.post("/_faults", json=plan).raise_for_status()

    def fault_log(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.http.get("/_faults/log").raise_for_status().json()["data"]
        return found

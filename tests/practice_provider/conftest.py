from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dev.practice_provider.server import RunningSimulator, start_in_thread
from dev.practice_provider.settings import Settings
from practice_provider.anthropic_client import AnthropicClient
from practice_provider.client import Client

StartSimulator = Callable[..., Client]
StartAnthropic = Callable[..., AnthropicClient]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartSimulator]:
    """Starts simulators that are stopped at the end; fast by default."""
    running: list[tuple[RunningSimulator, Client]] = []

    def _start(*, client_key: str = "any", data_dir: Path | None = None, **settings: Any) -> Client:
        values = {"batch_s": 0.0, "cancel_s": 0.0, "count_tokens": "approx"} | settings
        simulator = start_in_thread(Settings(data_dir=data_dir or tmp_path / f"data-{len(running)}", **values))
        client = Client(simulator.base_url, client_key)
        running.append((simulator, client))
        client.simulator = simulator
        return client

    yield _start
    for simulator, client in running:
        client.close()
        simulator.ask_to_stop()


@pytest.fixture
def fast(start: StartSimulator) -> Client:
    return start()


@pytest.fixture
def start_anthropic(start: StartSimulator) -> Iterator[StartAnthropic]:
    """Starts simulators as `start` does, and gives Anthropic's client of each."""
    made: list[AnthropicClient] = []

    def _start(*, client_key: str = "any", **settings: Any) -> AnthropicClient:
        made.append(AnthropicClient(start(client_key=client_key, **settings).simulator, client_key))
        return made[-1]

    yield _start
    for one in made:
        one.close()


@pytest.fixture
def claude(start_anthropic: StartAnthropic) -> AnthropicClient:
    return start_anthropic()

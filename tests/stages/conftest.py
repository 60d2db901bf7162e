from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.pipeline_fixtures import pipeline, simulator

from nightmill.simulator.server import RunningSimulator, start_in_thread
from nightmill.simulator.settings import Settings

__all__ = ["pipeline", "simulator"]


@pytest.fixture
def start_simulator(tmp_path: Path) -> Iterator[Callable[..., RunningSimulator]]:
    """`start_simulator(**settings)` starts another provider; stopped after the test."""
    running: list[RunningSimulator] = []

    def start(**settings: Any) -> RunningSimulator:
        data_dir = tmp_path / f"provider-{len(running) + 2}"
        running.append(start_in_thread(Settings(**{"data_dir": data_dir, "batch_s": 0, **settings})))
        return running[-1]

    yield start
    for one in running:
        one.stop()

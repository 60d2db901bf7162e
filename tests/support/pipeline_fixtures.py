"""Fixtures around Pipeline; a conftest that wants them imports them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dev.practice_provider.server import RunningSimulator, start_in_thread
from dev.practice_provider.settings import Settings
from dev.stack.postgres import Server
from support.pipeline import Pipeline
from support.pipeline_template import FILES, WRITER


@pytest.fixture
def simulator(tmp_path: Path) -> Iterator[RunningSimulator]:
    running = start_in_thread(Settings(data_dir=tmp_path / "provider", batch_s=0))
    yield running
    running.ask_to_stop()  # no later test opens its folder


@pytest.fixture
def pipeline(
    make_database: Callable[..., str],
    pipeline_template: str,
    postgres_server: Server,
    simulator: RunningSimulator,
    tmp_path: Path,
) -> Pipeline:
    """A job over 20 documents, set up and applied; nothing has run."""
    dsn = make_database(pipeline_template)
    folder = tmp_path / "jobs" / "notes"
    folder.mkdir(parents=True)
    made = Pipeline(
        admin_dsn=dsn,
        writer_dsn=postgres_server.dsn(dsn.rsplit("/", 1)[1], WRITER),
        simulator=simulator,
        folder=folder,
        store=tmp_path / "objects",
    )
    for name, content in FILES.items():
        made.write(name, content)
    return made


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
        one.ask_to_stop()

"""Workers killed before and after every transaction, provider call and payload write of every stage.

The points are found by running each stage once under watch. Whatever was killed where: the job ends exactly as if
nothing had happened, every item in a bucket, no request paid for twice, the costs equal to the provider's books.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.crash_stories import STORIES
from support.crash_sweep import Ending, Starter, Sweep
from support.figures import note
from support.pipeline import Pipeline
from support.vendors import ANTHROPIC, speak

from dev.stack.postgres import Server

SEED = 20
SAMPLE = {"run_shard": 3}
DOORS = {
    "freeze": {"commit", "store write"},
    "plan": {"commit"},
    "run_shard": {
        "commit",
        "store keep_file",
        "POST /v1/files",
        "POST /v1/batches",
        "GET /v1/batches/{id}",
        "GET /v1/files/{id}/content",
        "DELETE /v1/files/{id}",
    },
    "reconcile": {"commit"},
    "publish": {"commit"},
    "cancel": {"commit"},
    "wind_down": {
        "commit",
        "store keep_file",
        "POST /v1/batches/{id}/cancel",
        "GET /v1/batches/{id}",
        "GET /v1/files/{id}/content",
        "DELETE /v1/files/{id}",
    },
    "replay": {"commit"},
    "rollback": {"commit"},
}
MESSAGE_BATCHES = "/v1/messages/batches"
ANTHROPIC_DOORS = {
    "run_shard": {
        "commit",
        "store keep_file",
        f"POST {MESSAGE_BATCHES}",
        f"GET {MESSAGE_BATCHES}/{{id}}",
        f"GET {MESSAGE_BATCHES}/{{id}}/results",
    },
    "wind_down": {
        "commit",
        "store keep_file",
        f"POST {MESSAGE_BATCHES}/{{id}}/cancel",
        f"GET {MESSAGE_BATCHES}/{{id}}",
        f"GET {MESSAGE_BATCHES}/{{id}}/results",
    },
}
Crash = tuple[str, str]


@pytest.fixture(scope="module")
def starter() -> Iterator[Starter]:
    with Starter() as started:
        yield started


@pytest.fixture
def sweep(pipeline: Pipeline, postgres_server: Server, tmp_path: Path, starter: Starter) -> Sweep:
    return Sweep(pipeline, postgres_server, tmp_path / "copies", starter)


def crashes(points: list[str]) -> list[Crash]:
    return [(point, moment) for point in points for moment in ("before", "after")]


def survived(sweep: Sweep, stage: str, chosen: list[Crash], undisturbed: Ending) -> None:
    """Every one of the crashes leads to the same ending; all that do not are named."""
    wrong = []
    for point, moment in chosen:
        try:
            ending = sweep.crash(stage, point, moment)
            assert ending == undisturbed
        except Exception as fault:
            wrong.append(f"{moment} {point}: {type(fault).__name__}: {fault}")
    assert not wrong, f"{len(wrong)} of {len(chosen)} crashes of {stage}:\n" + "\n".join(wrong)


@pytest.mark.parametrize("stage", STORIES)
def test_a_stage_that_is_killed_at_points_drawn_by_lot_ends_as_if_nothing_had_happened(
    sweep: Sweep, stage: str
) -> None:
    points, undisturbed = sweep.points(stage)
    assert {point.partition(" in ")[0] for point in points} >= DOORS[stage]
    drawn = random.Random(f"{SEED} {stage}").sample(crashes(points), SAMPLE.get(stage, 1))
    survived(sweep, stage, drawn, undisturbed)


@pytest.mark.parametrize("stage", ANTHROPIC_DOORS)
def test_the_same_where_the_create_call_carries_the_requests(sweep: Sweep, pipeline: Pipeline, stage: str) -> None:
    speak(pipeline, ANTHROPIC)
    points, undisturbed = sweep.points(stage)
    assert {point.partition(" in ")[0] for point in points} >= ANTHROPIC_DOORS[stage]
    creates = [point for point in points if point.startswith(f"POST {MESSAGE_BATCHES} in ")]
    drawn = random.Random(f"{SEED} anthropic {stage}").sample(crashes(points), 1)
    survived(sweep, stage, [*crashes(creates[:1]), *drawn], undisturbed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stage", ANTHROPIC_DOORS)
def test_any_point_of_it_where_the_create_call_carries_the_requests(
    sweep: Sweep, pipeline: Pipeline, stage: str
) -> None:
    speak(pipeline, ANTHROPIC)
    points, undisturbed = sweep.points(stage)
    survived(sweep, stage, crashes(points), undisturbed)
    note(f"{stage}, message batches: {len(points)} points, {2 * len(points)} crashes")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stage", STORIES)
def test_a_stage_that_is_killed_at_any_point_ends_as_if_nothing_had_happened(sweep: Sweep, stage: str) -> None:
    began = time.monotonic()
    points, undisturbed = sweep.points(stage)
    survived(sweep, stage, crashes(points), undisturbed)
    note(f"{stage}: {len(points)} points, {2 * len(points)} crashes, {time.monotonic() - began:.0f} s")

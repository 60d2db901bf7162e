"""Every worker is killed after the same few steps, wherever that is: each one goes on where the last one stopped."""

from __future__ import annotations

import signal
from collections.abc import Callable
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from support.crash_sweep import Starter
from support.pipeline import Pipeline
from support.steps import cancel, one_shard, paid_once, provider_batches, publish_unchecked

from dev.practice_provider.server import RunningSimulator
from nightmill.upkeep import wind_down

StartSimulator = Callable[..., RunningSimulator]

ITEMS, FILES = 20, 4
STEPS = 8  # to look what is due, then intent, upload, create, or poll, download, settle, and each one's commit
WORKERS = 40  # ten for each file
UPLOADS = 5  # steps that are enough to look what is due, intend, upload and record the file, and not to create


def test_a_shard_none_of_whose_workers_gets_further_than_a_few_steps_ends_all_the_same(pipeline: Pipeline) -> None:
    limits = f"poll_interval_s: 1\n  limits: {{requests_per_file: {ITEMS // FILES}}}"
    pipeline.edit("job.yaml", "poll_interval_s: 1", limits)
    pipeline.edit("job.yaml", "create_timeout_s: 5", "create_timeout_s: 1")  # until an unsent file is sent anew
    batch, shard = one_shard(pipeline)
    codes = []
    with Starter() as starter:
        while 0 not in codes:
            points, code = starter.run(pipeline, "wakes", shard, steps=STEPS)
            codes.append(code)
            assert len(codes) < WORKERS, f"no progress; the last worker came to {points}"
    assert set(codes[:-1]) == {-signal.SIGKILL}
    assert len(codes) > FILES
    publish_unchecked(pipeline, batch)
    paid_once(pipeline, ITEMS)


def test_a_file_is_not_uploaded_again_by_workers_that_live_too_short_to_send_it_at_one_go(pipeline: Pipeline) -> None:
    _, shard = one_shard(pipeline)
    with Starter() as starter:
        lives = [starter.run(pipeline, "wakes", shard, steps=UPLOADS) for _ in range(2)]
    assert [code for _, code in lives] == [-signal.SIGKILL] * 2
    calls = [point.partition(" in ")[0] for points, _ in lives for point in points if point.startswith("POST")]
    assert calls == ["POST /v1/files", "POST /v1/batches"]
    pipeline.drive([shard])
    assert [state for state, _, _ in provider_batches(pipeline)] == ["COLLECTED"]
    paid_once(pipeline, ITEMS)


def test_a_file_that_only_another_account_has_is_uploaded_anew(
    pipeline: Pipeline, start_simulator: StartSimulator
) -> None:
    _, shard = one_shard(pipeline)
    with Starter() as starter:
        starter.run(pipeline, "wakes", shard, steps=UPLOADS)
    other = start_simulator()
    pipeline.base_url = other.base_url
    pipeline.drive([shard])
    assert [state for state, _, _ in provider_batches(pipeline)] == ["ABANDONED", "COLLECTED"]
    assert [one["status"] for one in other.books(summary=True)["batches"]] == ["completed"]


def test_a_file_that_was_uploaded_and_never_sent_is_deleted_once_its_batch_is_cancelled(pipeline: Pipeline) -> None:
    batch, shard = one_shard(pipeline)
    with Starter() as starter:
        starter.run(pipeline, "wakes", shard, steps=UPLOADS)
    [(file_id,)] = pipeline.sql("select input_ref from nightmill.provider_batch where state = 'INTENT'")
    cancel(pipeline, batch.batch_id)
    wind_down.run(pipeline.env, {})
    assert provider_batches(pipeline) == [("ABANDONED", "cancelled before it was sent", None)]
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"{pipeline.simulator.base_url}/files/{file_id}", timeout=10)

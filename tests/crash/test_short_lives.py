"""Every worker is killed after the same few steps, wherever that is: each one goes on where the last one stopped."""

from __future__ import annotations

import signal

from support.crash_sweep import Starter
from support.pipeline import Pipeline
from support.steps import one_shard, paid_once, publish_unchecked

ITEMS, FILES = 20, 4
STEPS = 8  # to look what is due, then intent, upload, create, or poll, download, settle, and each one's commit
WORKERS = 40  # ten for each file


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

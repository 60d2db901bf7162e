"""Every request file is within every limit, whatever the sizes; an item that is larger than a budget goes alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.pipeline import Pipeline
from support.steps import batch_of

from nightmill.jobs.settings.provider_settings import ProviderLimits
from nightmill.stages.run_shard import render
from nightmill.stages.run_shard.wake_up import WakeUp
from nightmill.storage import sending, shards
from nightmill.storage.fence import Holder

ITEMS = 40


@pytest.fixture
def wake_up(pipeline: Pipeline, tmp_path: Path) -> Iterator[WakeUp]:
    """A wake-up over 40 documents of very different sizes."""
    draw = random.Random(7)
    pipeline.sql("delete from documents")
    pipeline.documents(
        [
            (
                f"doc-{n:02}",
                "1",
                "",
                draw.choice(("word ", "合同", '"\\" ', "🦉")) * draw.choice((1, 3, 20, 100, 300, 450)),
            )
            for n in range(ITEMS)
        ]
    )
    pipeline.edit("job.yaml", "shards: {count: 2}", "shards: {count: 1}")
    batch = pipeline.freeze()
    [shard_id] = pipeline.plan(batch)
    with ExitStack() as stack:
        conn = stack.enter_context(pipeline.env.ledger())
        yield WakeUp(
            env=pipeline.env,
            conn=conn,
            provider=stack.enter_context(pipeline.env.provider(pipeline.live)),
            account="account",
            batch=batch_of(pipeline, batch.batch_id),
            shard=shards.get(conn, shard_id),
            holder=Holder(batch.batch_id, 1, shard_id, 0),
            pinned=pipeline.live,
            live=pipeline.live.job,
            directory=tmp_path,
        )


def limit(wake_up: WakeUp, requests: int, file_bytes: int) -> None:
    limits = ProviderLimits(requests_per_file=requests, bytes_per_file=file_bytes)
    provider = wake_up.live.provider.model_copy(update={"limits": limits})
    wake_up.live = wake_up.live.model_copy(update={"provider": provider})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    requests=st.integers(1, 50),
    file_bytes=st.integers(4_000, 40_000),
    budget=st.none() | st.integers(0, 4_000),
    chosen=st.sets(st.integers(0, ITEMS - 1), min_size=1),
)
def test_files_hold_each_wanted_item_once_within_every_limit_and_are_as_full_as_they_may_be(
    wake_up: WakeUp, requests: int, file_bytes: int, budget: int | None, chosen: set[int]
) -> None:
    limit(wake_up, requests, file_bytes)
    tokens = dict(shards.unsettled(wake_up.conn, wake_up.shard))
    wanted = {ordinal: tokens[ordinal] for ordinal in sorted(chosen)}
    sizes: dict[int, int] = {}
    files = []
    rest = dict(wanted)
    while rest:
        file = render.one_file(wake_up, "token", rest, {}, budget)
        lines = file.path.read_bytes().split(b"\n")[:-1]
        assert [orjson.loads(line)["custom_id"] for line in lines] == [f"token-0-{one}" for one in file.ordinals]
        sizes |= {ordinal: len(line) + 1 for ordinal, line in zip(file.ordinals, lines, strict=True)}
        assert file.file_bytes == file.path.stat().st_size == sum(sizes[one] for one in file.ordinals)
        assert file.prompt_tokens == sum(wanted[one] for one in file.ordinals)
        assert 1 <= len(file.ordinals) <= requests
        assert file.file_bytes <= file_bytes
        assert budget is None or file.prompt_tokens <= budget or len(file.ordinals) == 1
        files.append(file)
        for ordinal in file.ordinals:
            del rest[ordinal]
    assert [one for file in files for one in file.ordinals] == list(wanted)
    for file, following in pairwise(files):
        first = following.ordinals[0]
        assert (
            len(file.ordinals) == requests
            or file.file_bytes + sizes[first] > file_bytes
            or (budget is not None and file.prompt_tokens + wanted[first] > budget)
        )


def test_a_line_above_the_file_limit_is_left_out_and_the_others_go_on(wake_up: WakeUp) -> None:
    limit(wake_up, 10, 1_024)
    wanted = dict(shards.unsettled(wake_up.conn, wake_up.shard))
    sent: set[int] = set()
    too_long: set[int] = set()
    while wanted:
        file = render.one_file(wake_up, "token", wanted, {}, None)
        sent |= set(file.ordinals)
        too_long |= set(file.too_long)
        for ordinal in (*file.ordinals, *file.too_long):
            wanted.pop(ordinal, None)
    assert sent
    assert too_long
    assert sent | too_long == set(range(ITEMS))
    assert not sent & too_long


def test_a_file_rendered_again_after_a_crash_is_the_same_byte_by_byte(wake_up: WakeUp) -> None:
    from nightmill.storage.sending import Intent

    wanted = dict(shards.unsettled(wake_up.conn, wake_up.shard))
    del wanted[3], wanted[17]
    file = render.one_file(wake_up, "token", wanted, {}, None)
    first = file.path.read_bytes()
    intent = Intent("notes", "token", "a", "openai", "m", file.ordinals, file.prompt_tokens, file.file_bytes, None)
    one = sending.intend(wake_up.conn, wake_up.holder, intent)
    assert one is not None
    again = render.rerender(wake_up, one)
    assert again.path.read_bytes() == first
    assert (again.ordinals, again.file_bytes) == (file.ordinals, file.file_bytes)

"""Waiting shards in one triggerer: what they cost, and what wakes them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager

import httpx
import psycopg
import pytest
from support.pipeline import Pipeline

from nightmill.domain.errors import ProviderUnavailable
from nightmill.orchestration import poller, trigger
from nightmill.orchestration.poller import ShardPoller, Watch
from nightmill.orchestration.trigger import ShardTrigger
from nightmill.storage import batches

MANY, FEW = 50, 6
INTERVAL_S = 1.0


@pytest.fixture
def provider(pipeline: Pipeline) -> Iterator[httpx.Client]:
    """The provider's control routes; its batches are held in progress."""
    with httpx.Client(base_url=pipeline.simulator.control_url, trust_env=False) as client:
        client.patch("/_faults", json={"hold": True}).raise_for_status()
        yield client


@pytest.fixture
def waiting(pipeline: Pipeline, provider: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids of a few shards, each with a batch at the provider."""
    return send(pipeline, FEW, monkeypatch)


def send(pipeline: Pipeline, count: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    monkeypatch.setattr(trigger, "FIRST_EVENT_S", 0.0)
    pipeline.edit("job.yaml", "shards: {count: 2}", f"shards: {{count: {count}}}")
    pipeline.sql(
        "insert into documents select 'more-' || n, '1', '', repeat('word ', 20) || n from generate_series(1, %s) n",
        count,
    )
    ids = pipeline.plan(pipeline.freeze())
    assert len(ids) == count
    for shard_id in ids:
        pipeline.wake(shard_id, restarted=True)
    pipeline.sql("update nightmill.shard set wake_at = now() + interval '1 hour'")
    define_connections(pipeline, monkeypatch)
    return ids


def define_connections(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    url = pipeline.writer_dsn.replace("postgresql://", "postgres://")
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", url)
    fields = {"conn_type": "generic", "host": pipeline.simulator.base_url, "password": "key"}
    monkeypatch.setenv("AIRFLOW_CONN_PROVIDER", json.dumps(fields))


Reasons = dict[int, str]


def make_trigger(shard_id: int) -> ShardTrigger:
    return ShardTrigger(shard_id, "provider", "openai", INTERVAL_S)


@asynccontextmanager
async def triggers(shard_ids: list[int]) -> AsyncIterator[Reasons]:
    """Runs one trigger per shard, as the triggerer does; fills in the reason of each event."""
    reasons: Reasons = {}

    async def watch(shard_id: int) -> None:
        async for event in make_trigger(shard_id).run():
            assert event.payload["shard_id"] == shard_id
            reasons[shard_id] = event.payload["reason"]

    tasks = [asyncio.create_task(watch(shard_id)) for shard_id in shard_ids]
    try:
        yield reasons
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.05)


def connections(pipeline: Pipeline) -> int:
    found = pipeline.sql(
        "select count(*) from pg_stat_activity where application_name = 'nightmill triggerer' "
        "and datname = current_database()"
    )
    return int(found[0][0])


def list_calls(pipeline: Pipeline) -> int:
    return int(pipeline.simulator.books(summary=True)["calls"].get("GET /v1/batches", 0))


def run(body: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(body())


def test_fifty_waiting_shards_cost_one_list_call_per_interval_and_one_database_connection(
    pipeline: Pipeline, provider: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = send(pipeline, MANY, monkeypatch)
    before, seen = list_calls(pipeline), []
    calls = 5

    async def body() -> None:
        async with triggers(waiting) as reasons:
            for number in range(1, calls + 1):
                await until(lambda number=number: list_calls(pipeline) - before >= number)  # type: ignore[misc]
                seen.append(connections(pipeline))
            assert reasons == {}

    began = time.monotonic()
    run(body)
    made, intervals = list_calls(pipeline) - before, (time.monotonic() - began) / INTERVAL_S
    assert calls <= made <= intervals + 1  # a busy machine makes intervals longer, never shorter
    assert seen == [1] * calls
    run(lambda: until(lambda: connections(pipeline) == 0))  # and nothing is left behind


def test_each_shard_is_woken_when_its_provider_batch_ends(
    pipeline: Pipeline, waiting: list[int], provider: httpx.Client
) -> None:
    async def body() -> None:
        async with triggers(waiting) as reasons:
            await asyncio.sleep(INTERVAL_S * 1.5)
            assert reasons == {}
            provider.patch("/_faults", json={"hold": False}).raise_for_status()
            await until(lambda: len(reasons) == FEW)
            assert set(reasons.values()) == {"provider batch ended"}

    run(body)


def test_only_the_shard_that_is_due_is_woken(pipeline: Pipeline, waiting: list[int]) -> None:
    async def body() -> None:
        async with triggers(waiting) as reasons:
            pipeline.sql("update nightmill.shard set wake_at = now() where shard_id = %s", waiting[2])
            await until(lambda: bool(reasons))
            await asyncio.sleep(INTERVAL_S * 1.5)
            assert reasons == {waiting[2]: "due"}

    run(body)


def test_cancelling_the_batch_wakes_every_shard(pipeline: Pipeline, waiting: list[int]) -> None:
    async def body() -> None:
        async with triggers(waiting) as reasons:
            await asyncio.sleep(INTERVAL_S * 1.5)
            with psycopg.connect(pipeline.writer_dsn) as conn:
                batch_id = pipeline.sql("select batch_id from nightmill.shard limit 1")[0][0]
                batches.cancel(conn, batch_id, "test")
            await until(lambda: len(reasons) == FEW)
            assert set(reasons.values()) == {"due"}

    run(body)


def test_a_shard_that_is_watched_twice_for_a_moment_wakes_both_triggers(pipeline: Pipeline, waiting: list[int]) -> None:
    fired: list[str] = []

    async def watch(shard_id: int) -> None:
        fired.extend([event.payload["reason"] async for event in make_trigger(shard_id).run()])

    async def body() -> None:
        pipeline.sql("update nightmill.shard set wake_at = now() where shard_id = %s", waiting[0])
        await asyncio.wait_for(asyncio.gather(watch(waiting[0]), watch(waiting[0])), 60)

    run(body)
    assert fired == ["due", "due"]


def test_the_provider_down_is_waited_out(
    pipeline: Pipeline, waiting: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A due shard is woken while the provider is away; the others when it is back."""
    fields = {"conn_type": "generic", "host": "http://127.0.0.1:9/v1", "password": "key"}
    monkeypatch.setenv("AIRFLOW_CONN_PROVIDER", json.dumps(fields))

    async def body() -> None:
        async with triggers(waiting) as reasons:
            pipeline.sql("update nightmill.shard set wake_at = now() where shard_id = %s", waiting[3])
            await until(lambda: waiting[3] in reasons)
            assert reasons == {waiting[3]: "due"}
            httpx.patch(f"{pipeline.simulator.control_url}/_faults", json={"hold": False}, trust_env=False)
            define_connections(pipeline, monkeypatch)
            await until(lambda: len(reasons) == FEW)

    run(body)


def test_the_database_down_is_waited_out_with_a_new_connection(
    pipeline: Pipeline, waiting: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = pipeline.sql("select current_database()")[0][0]

    def admin(statement: str) -> None:
        with psycopg.connect(pipeline.admin_dsn.rsplit("/", 1)[0] + "/postgres", autocommit=True) as conn:
            conn.execute(statement)

    async def body() -> None:
        async with triggers(waiting) as reasons:
            await until(lambda: connections(pipeline) == 1)
            admin(f"alter database {name} allow_connections false")
            admin(f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'")
            await asyncio.sleep(INTERVAL_S * 2.5)
            assert reasons == {}
            admin(f"alter database {name} allow_connections true")
            pipeline.sql("update nightmill.shard set wake_at = now() where shard_id <> %s", waiting[0])
            await until(lambda: len(reasons) == FEW - 1)
            assert connections(pipeline) == 1

    run(body)


class _FaultyWatcher:
    """Raises what nobody foresaw, twice; then names what it is asked about as unknown."""

    def __init__(self) -> None:
        self.calls = 0
        self.closed = 0

    async def statuses(self, provider_ids: object, since: object) -> dict[str, object]:
        self.calls += 1
        raise [KeyError("surprise"), ProviderUnavailable("It is away.", "wait.")][self.calls % 2]

    async def close(self) -> None:
        self.closed += 1
        raise RuntimeError("closing fails too")


def test_an_unforeseen_fault_does_not_end_the_poller(pipeline: Pipeline, waiting: list[int]) -> None:
    watcher = _FaultyWatcher()

    async def opener() -> tuple[str, _FaultyWatcher]:
        return pipeline.writer_dsn, watcher

    async def body() -> None:
        polling = ShardPoller(opener)
        watch = Watch(waiting[0], 0.1)
        polling.add(watch)
        await until(lambda: watcher.calls >= 4)
        pipeline.sql("update nightmill.shard set wake_at = now()")
        await asyncio.wait_for(watch.woken.wait(), 60)

    run(body)
    assert watcher.closed >= 4


def test_a_watch_added_while_the_poller_closes_is_polled() -> None:
    closing = asyncio.Event()

    class SlowToClose(ShardPoller):
        async def _close(self) -> None:
            closing.set()
            await asyncio.sleep(0.2)

        async def _tick(self) -> None:
            for watch in self._watches:
                watch.wake("polled")

    async def never() -> None:
        raise AssertionError

    async def body() -> None:
        polling = SlowToClose(never)
        first, second = Watch(1, 0.05), Watch(2, 0.05)
        polling.add(first)
        polling.remove(first)
        await asyncio.wait_for(closing.wait(), 60)
        polling.add(second)
        await asyncio.wait_for(second.woken.wait(), 60)

    run(body)


def test_pollers_are_shared_by_key_within_one_event_loop() -> None:
    async def body() -> None:
        async def never() -> None:
            raise AssertionError

        assert poller.shared(("a",), never) is poller.shared(("a",), never)
        assert poller.shared(("a",), never) is not poller.shared(("b",), never)

    run(body)

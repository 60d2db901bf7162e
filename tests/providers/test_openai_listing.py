"""Batch objects and listings of OpenAI and of nearly compatible servers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from providers.openai_talk import ENDED, HTML, KEY, fault_from, talking_to
from providers.scripted_server import Request, ScriptedServer, answer, error

from nightmill.domain.errors import ProviderRefused, ProviderUnavailable
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.openai_shapes import batch_snapshot
from nightmill.providers.openai_watch import OpenAIWatcher
from nightmill.providers.port import BatchStatus

NOW = datetime(2025, 3, 1, tzinfo=UTC)


def batches(*ids: str, created_at: int = 1740787200, **more) -> list[dict]:
    return [{**ENDED, "id": name, "created_at": created_at, **more} for name in ids]


def listing(*pages: dict) -> Callable[[Request], bytes]:
    left = list(pages)
    return lambda request: answer({"object": "list", **left.pop(0)})


def test_c41_paging_that_does_not_advance_proves_nothing():
    broken = [
        [{"data": batches("b1"), "has_more": True}, {"data": batches("b1"), "has_more": True}],
        [{"data": [], "has_more": True}],
        [{"data": batches("b1"), "has_more": True}, {"data": [], "has_more": True}],
        [{"data": [{"status": "completed"}], "has_more": False}],
    ]
    for pages in broken:
        with talking_to(listing(*pages)) as (provider, server):
            found = provider.find_submitted("file-other", "t", NOW)
        assert (tuple(found.found), found.complete) == ((), False)
        assert len(server.requests) == len(pages)


def test_a_search_pages_on_until_the_listing_is_older_than_the_intent():
    old = int((NOW - timedelta(minutes=6)).timestamp())
    pages = [
        {"data": batches("b1", "b2"), "has_more": True},
        {"data": batches("b3", input_file_id="file-x") + batches("b4", created_at=old), "has_more": True},
    ]
    with talking_to(listing(*pages)) as (provider, server):
        found = provider.find_submitted("file-x", "t", NOW)
    assert [snapshot.provider_id for snapshot in found.found] == ["b3"]
    assert found.complete
    assert "after=b2" in server.requests[1].target
    assert "limit=100" in server.requests[0].target


def test_c98_a_batch_that_seems_older_than_its_intent_is_found_by_its_token():
    entry = batches("b1", created_at=int((NOW - timedelta(hours=1)).timestamp()), metadata={"nightmill_token": "t"})
    with talking_to(listing({"data": entry, "has_more": False})) as (provider, _):
        found = provider.find_submitted("file-other", "t", NOW)
    assert [snapshot.token for snapshot in found.found] == ["t"]


def test_a_listing_from_old_to_new_is_read_to_its_end():
    pages = [
        {"data": batches("b1", created_at=1) + batches("b2", created_at=4000), "has_more": True},
        {"data": batches("b3", input_file_id="file-x"), "has_more": False},
    ]
    with talking_to(listing(*pages)) as (provider, _):
        assert len(provider.find_submitted("file-x", "t", NOW).found) == 1


async def watch(base_url: str, ids: list[str]) -> dict[str, BatchStatus]:
    watcher = OpenAIWatcher(ProviderConnection("llm_night", base_url, KEY))
    try:
        return dict(await watcher.statuses(ids, NOW))
    finally:
        await watcher.close()


def test_watching_stops_as_soon_as_every_batch_was_seen():
    import asyncio

    with ScriptedServer(listing({"data": batches("b1", "b2", "b3"), "has_more": True})).running() as server:
        assert asyncio.run(watch(server.base_url, ["b1", "b3"])) == {"b1": BatchStatus.ENDED, "b3": BatchStatus.ENDED}
        assert asyncio.run(watch(server.base_url, [])) == {}
        assert len(server.requests) == 1


def test_watching_translates_faults_too():
    import asyncio

    with ScriptedServer(lambda request: HTML).running() as server:
        fault_from(lambda: asyncio.run(watch(server.base_url, ["b1"])), ProviderUnavailable)
    with ScriptedServer(lambda request: error("401 Who", None, KEY)).running() as server:
        fault_from(lambda: asyncio.run(watch(server.base_url, ["b1"])), ProviderRefused)


def test_c14_azure_batch_objects_are_read():
    snapshot = batch_snapshot(
        {
            "id": "b", "object": "batch", "status": "Failed", "created_at": "2024-06-27T06:37:07.3746615+00:00",
            "completion_window": None, "error_file_id": "", "input_file_id": "file-i",
            "request_counts": {"total": 10, "completed": None, "failed": None},
            "errors": {"object": "list", "data": [{"code": "empty_file", "message": "...", "line": None}]},
        }
    )  # fmt: skip
    assert (snapshot.status, snapshot.raw_status, snapshot.error_file_id) == (BatchStatus.FAILED, "Failed", None)
    assert snapshot.created_at == datetime(2024, 6, 27, 6, 37, 7, 374661, UTC)
    assert snapshot.counts == {"total": 10}
    assert [(problem.code, problem.line) for problem in snapshot.problems] == [("empty_file", None)]


@pytest.mark.parametrize("created", [1740787200, 1740787200.0, "1740787200", 1740787200000, "2025-03-01T00:00:00Z"])
def test_c14_times_are_read_in_every_form(created):
    assert batch_snapshot({**ENDED, "created_at": created}).created_at == NOW


def test_a_status_that_nobody_knows_keeps_its_word():
    snapshot = batch_snapshot({**ENDED, "status": "Paused_By_Admin"})
    assert (snapshot.status, snapshot.raw_status) == (BatchStatus.UNKNOWN, "Paused_By_Admin")


def test_a_batch_that_failed_with_results_has_ended():
    assert batch_snapshot({**ENDED, "status": "failed", "output_file_id": "file-o"}).status is BatchStatus.ENDED


@pytest.mark.parametrize(
    ("batch", "pending"),
    [
        ({"request_counts": {"total": 2, "completed": 2, "failed": 0}}, True),
        ({"request_counts": {"total": 2, "completed": 2, "failed": 0}, "output_file_id": "o"}, False),
        ({"request_counts": {"total": 2, "completed": 0, "failed": 2}, "error_file_id": "e"}, False),
        ({"request_counts": {"total": 2, "completed": 0, "failed": 2}}, True),
        ({"request_counts": None}, True),
        ({"request_counts": {"total": 0, "completed": 0, "failed": 0}}, False),
        ({"status": "cancelled", "request_counts": {"total": 5, "completed": 0, "failed": 0}}, False),
        ({"status": "in_progress", "request_counts": {"total": 2, "completed": 2, "failed": 0}}, False),
    ],
)
def test_c04_an_ended_batch_without_the_files_it_promises_is_pending(batch, pending):
    assert batch_snapshot({**ENDED, **batch}).results_pending is pending

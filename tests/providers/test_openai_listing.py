"""Batch objects and listings of OpenAI and of nearly compatible servers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from providers.openai_talk import ENDED, HTML, KEY, fault_from, found_ids, lookup, talking_to
from providers.scripted_server import Request, ScriptedServer, answer, error

from nightmill.domain.errors import ProviderRefused, ProviderUnavailable
from nightmill.domain.snapshots import Absent, BatchStatus, Found, Unclear
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.openai.shapes import batch_snapshot
from nightmill.providers.openai.watch import OpenAIWatcher

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
            found = lookup(provider, "file-other", "t", NOW)
        assert isinstance(found, Unclear)
        assert len(server.requests) == len(pages)


def test_a_search_pages_on_until_the_listing_is_older_than_the_intent():
    old = int((NOW - timedelta(minutes=6)).timestamp())
    pages = [
        {"data": batches("b1", "b2"), "has_more": True},
        {"data": batches("b3", input_file_id="file-x") + batches("b4", created_at=old), "has_more": True},
    ]
    with talking_to(listing(*pages)) as (provider, server):
        found = lookup(provider, "file-x", "t", NOW)
    assert found_ids(found) == ["b3"]
    assert "after=b2" in server.requests[1].target
    assert "limit=100" in server.requests[0].target


def test_c98_a_batch_that_seems_older_than_its_intent_is_found_by_its_token():
    entry = batches("b1", created_at=int((NOW - timedelta(hours=1)).timestamp()), metadata={"nightmill_token": "t"})
    with talking_to(listing({"data": entry, "has_more": False})) as (provider, _):
        found = lookup(provider, "file-other", "t", NOW)
    assert isinstance(found, Found)
    assert found.snapshot.token == "t"


def test_a_listing_from_old_to_new_is_read_to_its_end():
    pages = [
        {"data": batches("b1", created_at=1) + batches("b2", created_at=4000), "has_more": True},
        {"data": batches("b3", input_file_id="file-x"), "has_more": False},
    ]
    with talking_to(listing(*pages)) as (provider, _):
        assert len(found_ids(lookup(provider, "file-x", "t", NOW))) == 1


async def watch(base_url: str, ids: list[str]) -> dict[str, BatchStatus]:
    watcher = OpenAIWatcher(ProviderConnection("llm_night", base_url, KEY))
    try:
        return dict(await watcher.statuses(ids, NOW))
    finally:
        await watcher.close()


def busy(created: list[datetime]) -> list[dict]:
    """Entries of other people, made at these moments."""
    return [one for n, at in enumerate(created) for one in batches(f"b{n}", created_at=int(at.timestamp()))]


def apart(start: datetime, number: int, seconds: int) -> list[datetime]:
    return [start + timedelta(seconds=seconds * n) for n in range(number)]


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (apart(NOW - timedelta(days=1), 100, 60), "oldest first"),
        (apart(NOW - timedelta(minutes=20), 100, 0), "equal times show no order"),
        ([*apart(NOW, 50, -60), *apart(NOW, 50, -90)], "one entry out of order"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_listing_that_does_not_run_from_new_to_old_is_read_on_before_absence_counts(
    first: list[datetime], why: str
) -> None:
    pages = [
        {"data": busy(first), "has_more": True},
        {"data": batches("mine", input_file_id="file-x"), "has_more": False},
    ]
    with talking_to(listing(*pages)) as (provider, _):
        found = lookup(provider, "file-x", "t", NOW)
    assert found_ids(found) == ["mine"], why


def test_a_clock_that_is_an_hour_behind_does_not_end_the_search_at_the_first_page() -> None:
    """By its Date header. The entries are older than the intent by our clock, and younger by the provider's."""
    behind = timedelta(hours=1)
    there = format_datetime(datetime.now(UTC) - behind, usegmt=True)
    pages = [
        {"data": busy(apart(datetime.now(UTC) - behind, 100, -1)), "has_more": True},
        {"data": batches("mine", input_file_id="file-x"), "has_more": False},
    ]

    def told(request: Request) -> bytes:
        if "/files/" in request.target:
            return error("404 Not Found", None)
        return answer({"object": "list", **pages.pop(0)}, date=there)

    with talking_to(told) as (provider, _):
        found = lookup(provider, "file-x", "t", datetime.now(UTC) - timedelta(seconds=30))
    assert found_ids(found) == ["mine"]


def test_where_nothing_tells_the_providers_time_the_listing_is_read_to_its_end() -> None:
    pages = [
        {"data": busy(apart(NOW - timedelta(minutes=10), 100, -60)), "has_more": True},
        {"data": batches("last", created_at=0), "has_more": False},
    ]

    def told(request: Request) -> bytes:
        if "/files/" in request.target:
            return error("404 Not Found", None)
        return answer({"object": "list", **pages.pop(0)})

    with talking_to(told) as (provider, _):
        found = lookup(provider, "file-x", "t", NOW)
    assert (found, pages) == (Absent(), [])


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_provider_without_a_listing_proves_nothing_and_is_polled_by_id(status: int) -> None:
    with talking_to(lambda _: error(f"{status} No", None)) as (provider, _):
        found = lookup(provider, "file-x", "t", NOW)
    assert isinstance(found, Unclear)
    assert not found.can_change
    assert f"HTTP {status}" in found.why


def test_a_search_that_proves_nothing_says_why() -> None:
    pages = [{"data": batches("b1"), "has_more": True}, {"data": batches("b1"), "has_more": True}]
    with talking_to(listing(*pages)) as (provider, _):
        found = lookup(provider, "file-other", "t", NOW)
    assert isinstance(found, Unclear)
    assert "page 2 of its listing of batches repeats entries" in found.why


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
    assert (snapshot.status, snapshot.raw_status, snapshot.result_refs) == (BatchStatus.FAILED, "Failed", {})
    assert snapshot.created_at == datetime(2024, 6, 27, 6, 37, 7, 374661, UTC)
    assert (snapshot.requests_done, snapshot.requests_answered, snapshot.requests_total) == (None, None, 10)
    assert [(problem.code, problem.line) for problem in snapshot.complaints] == [("empty_file", None)]


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

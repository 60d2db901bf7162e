"""Nights of a view with one batch of each, on the real Airflow: three on schedule, one killed while it publishes, one
cancelled and cleared, one backfilled, and two asked for as one by hand."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import datetime

import pytest
from support.nights_story import ITEMS, Nights

CHANGED, GONE = 2, 1


@pytest.fixture(scope="module")
def told(nights: Future[Nights]) -> Nights:
    return nights.result(timeout=1800)


def test_the_view_has_exactly_the_newest_good_batch_of_each_night(told: Nights) -> None:
    assert told.shown == told.newest_good
    assert [count for _, _, count in told.shown] == [ITEMS - GONE, ITEMS, ITEMS]
    newest = [told.moments[name].batches[-1]["batch_id"] for name in ("backfilled", "cleared", "last")]
    assert [batch_id for _, batch_id, _ in told.shown] == newest


def test_what_is_green_has_data_and_what_has_no_data_is_red_and_says_what_to_do(told: Nights) -> None:
    published = {batch_id for _, batch_id in told.parts}
    ends = {"tried again", "last", "cleared", "backfilled", "cleared alone", "two in one"}
    for one in (told.moments[name] for name in ends):
        newest = one.batches[-1]
        assert (one.state == "success") == (newest["state"] == "PUBLISHED") == (newest["batch_id"] in published), one
        if one.state == "failed":
            assert one.said, f"{one.run_id} is red without a failed task"
            assert all("Remedy: " in log for log in one.said.values()), one.said


def test_two_nights_run_at_the_same_time(told: Nights) -> None:
    assert told.together == {"RUNNING"}


def test_a_publish_that_is_killed_after_its_commit_emits_its_event_when_it_is_tried_again(told: Nights) -> None:
    killed, after = told.moments["killed"], told.moments["tried again"]
    assert killed.batches[0]["state"] == "PUBLISHED"
    assert (after.state, len(after.batches)) == ("success", 1)
    [event] = after.events
    assert event["batch_id"] == after.batches[0]["batch_id"]


@pytest.mark.parametrize("name", ["tried again", "last", "cleared", "backfilled"])
def test_an_event_names_the_interval_and_a_publication_that_shows_the_batch(told: Nights, name: str) -> None:
    made = told.moments[name]
    batch, event = made.batches[-1], made.events[-1]
    assert (event["view"], event["batch_id"]) == ("nights", batch["batch_id"])
    assert (event["publish_seq"], batch["batch_id"]) in told.parts
    for end in ("data_interval_start", "data_interval_end"):
        assert datetime.fromisoformat(event[end]) == datetime.fromisoformat(batch[end])


def test_a_cancelled_night_that_is_cleared_opens_a_new_batch_and_is_added_behind_a_later_night(told: Nights) -> None:
    before, after = told.moments["cancelled"], told.moments["cleared"]
    assert [one["state"] for one in before.batches] == ["CANCELLED"]
    assert (after.run_id, after.state) == (before.run_id, "success")
    assert [(one["incarnation"], one["state"]) for one in after.batches] == [(1, "CANCELLED"), (2, "PUBLISHED")]
    assert after.batches[1]["counts"] == {"reused": ITEMS}  # also what came after the cancel
    assert after.batches[1]["frozen_at"] > told.moments["last"].batches[0]["frozen_at"]


def test_a_backfill_reads_a_published_night_again_and_pays_for_what_has_changed(told: Nights) -> None:
    made = told.moments["backfilled"]
    assert [(one["incarnation"], one["state"]) for one in made.batches] == [(1, "PUBLISHED"), (2, "PUBLISHED")]
    assert made.batches[1]["counts"] == {"accepted": CHANGED, "reused": ITEMS - CHANGED - GONE}


def test_clearing_freeze_snapshot_alone_after_a_backfill_keeps_the_manifest(told: Nights) -> None:
    made = told.moments["cleared alone"]
    assert (made.state, len(made.batches)) == ("success", 2)


def test_two_nights_in_one_are_refused_in_preflight_before_anything_is_paid(told: Nights) -> None:
    made = told.moments["two in one"]
    assert (made.state, list(made.said)) == ("failed", ["preflight"])
    assert "overlaps what results.nights shows" in made.said["preflight"]
    assert (made.batches[0]["state"], made.batches[0]["blocked_by"], made.events) == ("BLOCKED", "preflight", [])


def test_each_version_of_a_document_was_paid_for_once_in_all_these_nights(told: Nights) -> None:
    assert told.books["duplicates"] == []
    assert told.books["executed"] == 3 * ITEMS + CHANGED

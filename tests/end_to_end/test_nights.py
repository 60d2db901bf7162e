"""A week of nights as a new user runs them, on the real Airflow: three on schedule, one cancelled and cleared, one
cancelled and backfilled, one preview, one backfilled from before them all."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from support.nights_story import Nights

ITEMS, CHANGED = 6, 2
GREEN = {"PUBLISHED", "STAGED"}


@pytest.fixture(scope="module")
def told(nights: Future[Nights]) -> Nights:
    return nights.result(timeout=1800)


def test_what_is_green_has_data_and_what_has_no_data_is_red_and_says_what_to_do(told: Nights) -> None:
    assert len([one for one in told.runs if one.run_id.startswith("scheduled__")]) >= 3
    for one in told.runs:
        newest = one.batches[-1]
        shown_or_staged = newest["state"] == "STAGED" or newest["batch_id"] in one.published
        assert (one.state == "success") == (newest["state"] in GREEN) == shown_or_staged, one
        if one.state == "failed":
            assert one.said, f"{one.run_id} is red without a failed task"
            assert all("Remedy: " in log for log in one.said.values()), one.said


def test_a_night_on_schedule_is_green_and_published(told: Nights) -> None:
    night = told.moments["scheduled"]
    assert (night.state, night.batches[0]["state"], night.batches[0]["item_count"]) == ("success", "PUBLISHED", ITEMS)


def test_a_cancelled_night_that_is_cleared_opens_a_new_batch_and_publishes_it_without_paying_again(
    told: Nights,
) -> None:
    before, after = told.moments["cancelled"], told.moments["cleared"]
    assert (before.state, [one["state"] for one in before.batches]) == ("failed", ["CANCELLED"])
    assert before.batches[0]["batch_id"] not in after.published
    assert (after.run_id, after.state) == (before.run_id, "success")
    assert [(one["incarnation"], one["state"]) for one in after.batches] == [(1, "CANCELLED"), (2, "PUBLISHED")]
    assert after.batches[1]["counts"] == {"reused": ITEMS}  # also what came after the cancel


def test_a_cancelled_night_that_is_backfilled_opens_a_new_batch_too(told: Nights) -> None:
    night = told.moments["backfilled"]
    assert [one["incarnation"] for one in night.batches] == [1, 2]
    assert night.batches[0]["state"] == "CANCELLED"
    newest = night.batches[1]
    if night.state == "failed":  # the night after it was faster, and has newer rows
        assert "which is newer" in "".join(night.said.values())
    else:
        assert newest["state"] == "PUBLISHED"


def test_a_night_from_before_all_others_is_red_because_readers_see_newer_rows(told: Nights) -> None:
    night = told.moments["backfilled from before"]
    assert night.state == "failed"
    assert "newer" in "".join(night.said.values())
    assert night.batches[-1]["batch_id"] not in night.published


def test_a_run_by_hand_with_a_limit_is_a_preview_that_no_reader_sees(told: Nights) -> None:
    preview = told.moments["preview"]
    assert (preview.state, [one["state"] for one in preview.batches]) == ("success", ["STAGED"])
    assert told.rows_of_preview == 2
    assert preview.batches[0]["batch_id"] not in told.runs[0].published


def test_each_version_of_a_document_was_paid_for_once_in_all_these_nights(told: Nights) -> None:
    assert told.books["duplicates"] == []
    assert told.books["executed"] == ITEMS + 2 * CHANGED

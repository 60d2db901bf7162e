"""Approve, reject, mark, clear and time-out of the task approve, and a preview that is published later, on the real
Airflow through REST. Behind test_faults by its name: the story takes minutes, which pass beside those tests."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from support.approvals_story import Approvals
from support.foreign_jobs import CANARY

from dev.stack.airflow_settings import ADMIN_USER

BY_DEFAULT = "the time-out (approve.on_timeout: approve)"


@pytest.fixture(scope="module")
def told(approvals: Future[Approvals]) -> Approvals:
    return approvals.result(timeout=1800)


def test_the_batch_waits_blocked_and_the_question_tells_numbers_and_no_text(told: Approvals) -> None:
    now = told.moments["asked"]
    assert (now.batch["state"], now.batch["blocked_by"], now.shown) == ("BLOCKED", "approve", None)
    assert now.states["approve"] == "awaiting_input"
    for question in told.questions:
        assert question["subject"].startswith("Show batch ")
        assert "**Cost:**" in question["body"]
        assert "/nightmill/batch?dag_id=nightmill_permits" in question["body"]
        assert CANARY not in str(question)


def test_an_approved_batch_is_shown_and_the_ledger_says_by_whom(told: Approvals) -> None:
    now = told.moments["approved"]
    assert (now.batch["state"], now.shown) == ("PUBLISHED", now.batch["batch_id"])
    assert told.verdicts[now.batch["batch_id"]] == [("passed", ADMIN_USER)]


def test_a_rejected_batch_ends_with_the_reason_and_readers_see_what_they_saw(told: Approvals) -> None:
    now, before = told.moments["rejected"], told.moments["approved"]
    assert now.batch["state"] == "REJECTED"
    assert now.batch["state_reason"] == f"approve: rejected by {ADMIN_USER}: the dates are wrong"
    assert now.shown == before.shown
    assert (now.states["approve"], now.states["publish"]) == ("failed", "upstream_failed")
    assert "the dates are wrong" in now.log
    assert told.verdicts[now.batch["batch_id"]] == [("rejected", ADMIN_USER)]


def test_marking_the_task_as_success_opens_nothing_and_clearing_it_asks_again(told: Approvals) -> None:
    marked, cleared = told.moments["marked success"], told.moments["cleared after it was marked"]
    assert (marked.batch["state"], marked.states["publish"]) == ("BLOCKED", "failed")
    assert "is BLOCKED by approve: waits for an approval" in marked.log
    assert "Clear approve" in marked.log
    assert (cleared.batch["state"], cleared.shown) == ("PUBLISHED", cleared.batch["batch_id"])
    assert told.verdicts[cleared.batch["batch_id"]] == [("passed", ADMIN_USER)]


def test_without_a_default_the_time_out_blocks_and_with_one_it_decides(told: Approvals) -> None:
    silent, default = told.moments["nobody answered"], told.moments["cleared with a default"]
    assert (silent.batch["state"], silent.batch["blocked_by"]) == ("BLOCKED", "approve")
    assert "nobody answered until" in silent.log
    assert (default.batch["state"], default.shown) == ("PUBLISHED", default.batch["batch_id"])
    assert told.verdicts[default.batch["batch_id"]] == [("refused", None), ("passed", BY_DEFAULT)]


def test_a_preview_is_published_when_somebody_confirms_and_approves_it(told: Approvals) -> None:
    preview, refused = told.moments["preview"], told.moments["not confirmed"]
    assert (preview.batch["state"], preview.states["approve"]) == ("STAGED", "success")
    assert refused.batch["state"] == "STAGED"
    assert "has a limit of 2 rows" in refused.log
    published = told.moments["preview published"]
    batch_id = preview.batch["batch_id"]
    assert (published.batch["batch_id"], published.batch["state"], published.shown) == (batch_id, "PUBLISHED", batch_id)
    assert published.batch["generation"] == preview.batch["generation"]
    assert told.verdicts[batch_id] == [("passed", ADMIN_USER)]
    assert [one["extra"]["batch_id"] for one in told.events if one["name"] == "nightmill.results.permits"][:1] == [
        batch_id
    ]


def test_clearing_the_tasks_of_a_batch_at_rest_shows_the_recorded_result(told: Approvals) -> None:
    now = told.moments["cleared at rest"]
    assert set(now.states.values()) == {"success"}
    assert "approve has nothing to look at" in now.log

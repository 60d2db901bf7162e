"""The other ends of a run, and what people do to it in the UI."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from support.foreign_jobs import LETTERS, NOTES
from support.letters_story import AGAIN, DRY, MARKS, Letters
from support.running_site import Site, bought

ITEMS = 20
BEHIND = ("reconcile", "check_staging", "compare", "approve", "publish", "report")


@pytest.fixture(scope="module")
def told(letters: Future[Letters]) -> Letters:
    return letters.result(timeout=300)


def test_a_dry_run_ends_green_with_an_estimate_and_sends_nothing(told: Letters, site: Site) -> None:
    moment = told.moments["dry run"]
    assert moment.batch["state"] == "ESTIMATED"
    assert moment.batch["estimate"]["to_send"] == ITEMS
    assert moment.states["run_shard"] == "skipped"
    assert {moment.states[task] for task in BEHIND} == {"success"}
    assert "20 of 20 items to send in 2 shards" in moment.log
    assert [call for call in told.books[DRY]["calls"] if call.startswith("POST")] == []


def test_a_shard_marked_success_is_named_by_reconcile_and_nothing_goes_on(told: Letters) -> None:
    moment = told.moments["run_shard marked success"]
    assert moment.states["reconcile"] == "failed"
    assert {moment.states[task] for task in BEHIND[1:]} == {"upstream_failed"}
    assert f"open shards: {told.open_shard}." in moment.log
    assert moment.batch["state"] == "RUNNING"


def test_a_failed_check_blocks_the_batch_and_says_which(told: Letters) -> None:
    moment = told.moments["a check failed"]
    assert (moment.batch["state"], moment.batch["blocked_by"]) == ("BLOCKED", "check_staging")
    assert "ExpectTableRowCountToBeBetween" in moment.log
    assert "ExpectTableRowCountToBeBetween" in moment.batch["state_reason"]


def test_check_staging_marked_success_opens_nothing_for_publish(told: Letters) -> None:
    moment = told.moments["check_staging marked success"]
    assert moment.states["publish"] == "failed"
    assert moment.states["report"] == "upstream_failed"
    assert "check_staging" in moment.log
    assert moment.batch["state"] == "BLOCKED"


def test_publish_marked_success_publishes_nothing_and_report_says_so(told: Letters) -> None:
    moment = told.moments["publish marked success"]
    assert moment.states["publish"] == "success"
    assert moment.states["report"] == "failed"
    assert "nothing was published" in moment.log
    assert moment.batch["state"] == "BLOCKED"


def test_a_loosened_check_and_a_clear_publish_what_was_paid_for_once(told: Letters, site: Site) -> None:
    assert told.moments["check loosened and cleared"].batch["state"] == "PUBLISHED"
    assert site.buckets(MARKS) == {"accepted": ITEMS}
    assert told.books[MARKS]["executed"] == ITEMS
    assert told.books[MARKS]["duplicates"] == []


def test_a_second_run_reuses_everything_skips_the_shards_and_publishes(told: Letters, site: Site) -> None:
    moment = told.moments["second run"]
    assert moment.states["run_shard"] == "skipped"
    assert {moment.states[task] for task in BEHIND} == {"success"}
    assert moment.batch["state"] == "PUBLISHED"
    assert site.buckets(AGAIN) == {"reused": ITEMS}
    assert bought(told.books[AGAIN]) == bought(told.books[MARKS])
    assert site.sql("select count(*), min(batch_id) from results.letters") == [(ITEMS, moment.batch["batch_id"])]


def test_each_publication_has_its_asset_event_and_a_dry_run_has_none(told: Letters, site: Site) -> None:
    assert site.client.asset_events(LETTERS, DRY) == []
    for run_id in (MARKS, AGAIN):
        events = [event["extra"] for event in site.client.asset_events(LETTERS, run_id)]
        batch_id = site.batch(run_id)["batch_id"]
        (seq,) = site.sql("select publish_seq from nightmill.publication where batch_id = %s", batch_id)[0]
        shown: dict[str, object] = {"view": "letters", "batch_id": batch_id, "publish_seq": seq, "kind": "publish"}
        shown |= {"data_interval_start": None, "data_interval_end": None}  # a run by REST without a logical date
        assert [{name: event[name] for name in shown} for event in events] == [shown]


def test_a_bad_param_is_refused_when_the_run_is_triggered(site: Site) -> None:
    from nightmill.services.airflow_rest import AirflowRefused

    with pytest.raises(AirflowRefused, match="limit") as refused:
        site.client.trigger(NOTES, {"limit": 0}, run_id="bad")
    assert refused.value.status == 400


def test_up_again_makes_the_view_of_a_job_folder_that_was_added_since(site: Site) -> None:
    (site.jobs / "added").mkdir()
    for path in (site.jobs / "letters").iterdir():
        if path.is_file():
            text = path.read_text().replace("{view: letters}", "{view: added}")
            (site.jobs / "added" / path.name).write_text(text)
    running = site.stack.up()
    assert running.changed == ()
    assert [(one.job, one.outcome) for one in running.applied if one.outcome != "unchanged"] == [("added", "created")]
    assert site.sql("select count(*) from results.added") == [(0,)]

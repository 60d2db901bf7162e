"""Dead letters sent again by nightmill_replay, and a run that a person marks as failed, on the real Airflow.

The tests follow one another: each goes on from what the one before it left.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.foreign_jobs import PARCELS
from support.running_site import Site, wait_for

REPLAY, MAINTENANCE = "nightmill_replay", "nightmill_maintenance"
FIRST, AGAIN, MARKED, NEXT = "first", "again", "marked", "next"
ITEMS, CHANGED = 24, 6
REFUSED = (3, 7)  # ordinals, in the first run


@pytest.fixture(scope="module", autouse=True)
def _a_run_with_dead_letters(site: Site) -> None:
    refused = {"match": f"-({'|'.join(map(str, REFUSED))})$", "status": 400, "type": "invalid_request_error"}
    site.slow_provider.faults(hold=False, line_error=[refused])
    site.client.trigger(PARCELS, run_id=FIRST)
    site.wait_run(PARCELS, FIRST, "success", "failed")
    site.slow_provider.faults(line_error=[])


def executed(site: Site) -> int:
    """Requests that the provider has answered so far; none may ever have been answered twice."""
    books: dict[str, Any] = site.slow_provider.books()
    assert books["duplicates"] == []
    return int(books["executed"])


def shown(site: Site) -> list[tuple[Any, ...]]:
    """Rows and documents in the view, by batch."""
    return site.sql("select batch_id, count(*), count(distinct source_id) from results.parcels group by batch_id")


def test_the_replay_dag_publishes_a_child_that_shows_no_fewer_rows_and_pays_for_the_chosen_only(site: Site) -> None:
    parent, paid = site.batch(FIRST), executed(site)
    assert site.buckets(FIRST) == {"accepted": ITEMS - len(REFUSED), "dead_lettered": len(REFUSED)}
    assert shown(site) == [(parent["batch_id"], ITEMS - len(REFUSED), ITEMS - len(REFUSED))]

    site.client.unpause(REPLAY)
    forged = {"job": "parcels", "classes": ["input"], "requested_by": "somebody else"}
    site.client.trigger(REPLAY, forged, run_id=AGAIN)
    site.wait_run(REPLAY, AGAIN, "success", "failed")
    run_id = f"replay_of_batch_{parent['batch_id']}__{AGAIN}"
    site.wait_run(PARCELS, run_id, "success", "failed")

    child = site.batch(run_id)
    assert (child["state"], child["parent_batch_id"]) == ("PUBLISHED", parent["batch_id"])
    assert child["requested_by"] == "admin"  # as Airflow recorded it for nightmill_replay
    assert site.buckets(run_id) == {"accepted": len(REFUSED), "reused": ITEMS - len(REFUSED)}
    assert shown(site) == [(child["batch_id"], ITEMS, ITEMS)]
    assert executed(site) == paid + len(REFUSED)


def test_a_run_marked_as_failed_is_cancelled_wound_down_and_never_shown(site: Site) -> None:
    before, paid = shown(site), executed(site)
    site.source("update parcels set version = '2', body = body || ' again' where weight <= %s", CHANGED)
    site.slow_provider.faults(hold=True)
    site.client.trigger(PARCELS, run_id=MARKED)
    for place in (0, 1):
        site.wait_state(PARCELS, MARKED, f"run_shard[{place}]", "deferred")

    site.client.set_run_state(PARCELS, MARKED, "failed")
    wait_for(lambda: site.batch(MARKED)["state"] == "CANCELLED", 120, "the batch to be cancelled")
    assert site.batch(MARKED)["generation"] == 2
    assert "marked as failed" in site.batch(MARKED)["state_reason"]

    site.slow_provider.faults(hold=False)  # the answers come after all
    wait_for(lambda: executed(site) == paid + CHANGED, 120, "late answers")
    site.client.trigger(MAINTENANCE, run_id=MARKED)
    site.wait_run(MAINTENANCE, MARKED, "success", "failed")
    states = site.sql(
        "select distinct state from nightmill.provider_batch where batch_id = %s", site.batch(MARKED)["batch_id"]
    )
    assert states == [("COLLECTED",)]
    assert site.batch(MARKED)["state"] == "CANCELLED"
    assert shown(site) == before


def test_the_run_after_it_reuses_the_late_answers_and_sends_only_what_is_missing(site: Site) -> None:
    paid = executed(site)
    site.source("update parcels set version = '2', body = body || ' again' where weight = %s", CHANGED + 1)
    site.client.trigger(PARCELS, run_id=NEXT)
    site.wait_run(PARCELS, NEXT, "success", "failed")
    assert site.buckets(NEXT) == {"accepted": 1, "reused": ITEMS - 1}
    assert executed(site) == paid + 1
    assert shown(site) == [(site.batch(NEXT)["batch_id"], ITEMS, ITEMS)]

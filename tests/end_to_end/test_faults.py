"""One run under every fault that a night can bring, on the real scheduler.

The tests follow one another on one stack: each goes on from what the one before it left.
"""

from __future__ import annotations

from typing import Any

import psutil
import pytest
from support.foreign_jobs import CANARY, ITEMS, NOTES
from support.running_site import Site, bought, kill, wait_for

RUN = "faults"
SHARDS = 4
ALWAYS_FAILS, FAILS_ONCE = 3, 30  # ordinals
DELAY_S = 8


def bills(site: Site) -> dict[str, Any]:
    """The other provider's books; no request may ever have been answered twice."""
    books = site.provider.books()
    assert books["duplicates"] == []
    return books


def provider_batches(site: Site, state: str) -> list[tuple[int, int]]:
    """(shard's place among its siblings, provider batch id) of the run's provider batches in a state."""
    return sorted(
        (int(place), int(one))
        for place, one in site.sql(
            "select (select count(*) from nightmill.shard before where before.batch_id = one.batch_id "
            "and before.shard_id < one.shard_id), provider_batch_id "
            "from nightmill.provider_batch one where batch_id = %s and state = %s",
            site.batch(RUN).get("batch_id", 0), state,
        )
    )  # fmt: skip


def state_of(site: Site, provider_batch_id: int) -> str:
    return str(
        site.sql("select state from nightmill.provider_batch where provider_batch_id = %s", provider_batch_id)[0][0]
    )


def deferred(site: Site) -> int:
    states = site.states(NOTES, RUN)
    return sum(states.get(f"run_shard[{place}]") == "deferred" for place in range(SHARDS))


def all_deferred(site: Site) -> None:
    wait_for(lambda: deferred(site) == SHARDS, 120, "all shards to wait", lambda: site.states(NOTES, RUN))


def caught_working(site: Site, state: str) -> tuple[int, int]:
    """(pid, provider batch id) of a task that works on a provider batch in this state now."""
    found: list[tuple[int, int]] = []

    def look() -> bool:
        pids = dict(site.working(NOTES, RUN, "run_shard"))
        found[:] = [(pids[place], one) for place, one in provider_batches(site, state) if place in pids]
        return bool(found)

    wait_for(look, 180, f"a worker with a provider batch in {state}", lambda: site.states(NOTES, RUN))
    return found[0]


def test_a_worker_killed_in_the_middle_of_submit_has_its_batch_adopted_and_not_paid_again(site: Site) -> None:
    errors = [
        {"match": f"-{ALWAYS_FAILS}$", "times": None, "message": f"cannot read: {CANARY}"},
        {"match": f"-{FAILS_ONCE}$", "times": 1, "message": f"cannot read: {CANARY}"},
    ]
    site.provider.faults(create_delay_s=DELAY_S, hold=True, line_error=errors)
    site.client.trigger(NOTES, run_id=RUN)
    pid, one = caught_working(site, "CREATING")
    file_id = site.sql("select input_ref from nightmill.provider_batch where provider_batch_id = %s", one)[0][0]

    def accepted() -> list[str]:
        return [batch["id"] for batch in bills(site)["batches"] if batch["input_file_id"] == file_id]

    wait_for(lambda: bool(accepted()), 120, "the provider to accept the batch")
    task = psutil.Process(pid)
    worker = task.parent()
    assert worker is not None
    kill([worker, task])
    assert state_of(site, one) == "CREATING"
    site.provider.faults(create_delay_s=0)

    wait_for(
        lambda: state_of(site, one) == "SUBMITTED", 120, "the batch to be adopted", lambda: site.states(NOTES, RUN)
    )
    all_deferred(site)
    assert len(accepted()) == 1
    assert site.sql("select adopted from nightmill.provider_batch where provider_batch_id = %s", one) == [(True,)]
    assert len(bills(site)["batches"]) == SHARDS


def test_the_triggerer_killed_while_shards_wait_is_repaired_by_up(site: Site) -> None:
    all_deferred(site)
    site.kill_component("triggerer")
    assert site.stack.up().changed == ("triggerer",)
    assert deferred(site) == SHARDS


def test_clearing_a_waiting_shard_attaches_to_the_same_provider_batch(site: Site) -> None:
    before = provider_batches(site, "SUBMITTED")
    site.client.clear(NOTES, RUN, [("run_shard", 1)])
    site.wait_state(NOTES, RUN, "run_shard[1]", "queued", "running", "scheduled", "None")
    site.wait_state(NOTES, RUN, "run_shard[1]", "deferred")
    assert provider_batches(site, "SUBMITTED") == before
    assert len(bills(site)["batches"]) == SHARDS


def test_marking_a_shard_failed_cancels_nothing_and_clearing_it_goes_on(site: Site) -> None:
    site.client.set_task_state(NOTES, RUN, "run_shard", "failed", 2)
    # The scheduler passes the failure on task by task; a clear in the middle of that leaves the later ones behind.
    site.wait_state(NOTES, RUN, "report", "upstream_failed")
    assert {batch["status"] for batch in bills(site)["batches"]} == {"in_progress"}
    site.client.clear(NOTES, RUN, [("run_shard", 2)], downstream=True)
    site.wait_state(NOTES, RUN, "run_shard[2]", "deferred")
    assert len(bills(site)["batches"]) == SHARDS


def test_the_scheduler_killed_while_shards_wait_is_repaired_by_up(site: Site) -> None:
    all_deferred(site)
    site.kill_component("scheduler")
    assert site.stack.up().changed == ("scheduler",)


def test_a_worker_killed_in_the_middle_of_ingest_settles_every_line_once(site: Site) -> None:
    site.provider.faults(hold=False, content_delay_s=DELAY_S)
    pid, one = caught_working(site, "ENDED")
    kill([psutil.Process(pid)])
    assert state_of(site, one) == "ENDED"
    site.provider.faults(content_delay_s=0)
    site.wait_run(NOTES, RUN, "success", "failed")
    assert site.client.dag_run(NOTES, RUN)["state"] == "success", site.states(NOTES, RUN)
    assert state_of(site, one) == "COLLECTED"


def test_after_all_that_every_item_is_in_one_bucket_and_nothing_was_paid_twice(site: Site) -> None:
    batch = site.batch(RUN)
    assert batch["state"] == "PUBLISHED"
    assert batch["item_count"] == ITEMS
    assert site.buckets(RUN) == {"accepted": ITEMS - 1, "dead_lettered": 1}
    assert site.sql("select count(*), count(distinct source_id) from results.notes") == [(ITEMS - 1, ITEMS - 1)]
    assert site.sql("select count(*) from results.notes where batch_id <> %s", batch["batch_id"]) == [(0,)]
    books = bills(site)
    assert books["executed"] == ITEMS - 1
    assert site.sql("select count(*) from nightmill.attempt where batch_id = %s", batch["batch_id"]) == [
        (books["executed"] + books["failed"],)
    ]


def test_the_mapped_instances_are_named_by_tenant_items_and_tokens(site: Site) -> None:
    names = [one["rendered_map_index"] for one in site.instances(NOTES, RUN) if one["task_id"] == "run_shard"]
    assert len(names) == SHARDS
    batch_id = site.batch(RUN)["batch_id"]
    shards = site.sql("select items, prompt_tokens from nightmill.shard where batch_id = %s", batch_id)
    for items, tokens in shards:
        assert any(name.endswith(f" {items} items, {tokens:,} tokens") for name in names), names
    assert {word for name in names for word in ("acme", "umbrella") if word in name} == {"acme", "umbrella"}


def test_each_wake_up_says_in_one_line_what_it_saw_and_did(site: Site) -> None:
    log = site.log_of(NOTES, RUN, "run_shard", 0).splitlines()
    lines = [line for line in log if "shard " in line and "items" in line]
    assert any("collected" in line and "settled" in line for line in lines), lines


@pytest.mark.parametrize("task", ["freeze_snapshot", "plan_shards", "publish"])
def test_clearing_a_finished_task_shows_what_is_recorded_and_ends_green(site: Site, task: str) -> None:
    before = site.batch(RUN), site.buckets(RUN), bought(bills(site))
    publications = site.sql("select count(*) from nightmill.publication where view_name = 'notes'")
    tries = {one["task_id"]: one["try_number"] for one in site.instances(NOTES, RUN)}
    site.client.clear(NOTES, RUN, [task])
    site.wait_run(NOTES, RUN, "queued", "running")
    site.wait_run(NOTES, RUN, "success")
    assert {one["task_id"]: one["try_number"] for one in site.instances(NOTES, RUN)}[task] == tries[task] + 1
    assert (site.batch(RUN), site.buckets(RUN), bought(bills(site))) == before
    assert site.sql("select count(*) from nightmill.publication where view_name = 'notes'") == publications

"""The job `nights` on its schedule, a minute each, in the hands of a person: told once, beside other tests.

1. A scheduled night ends.
2. The next one is cancelled while the provider holds it back, and cleared.
3. The next one is cancelled likewise, and backfilled.
4. Somebody looks at two rows by hand, and backfills a night from before the first one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nightmill.connections import environment_of
from nightmill.local.airflow_rest import AirflowRefused
from nightmill.stages.run_shard import wind_down
from support.foreign_jobs import NIGHTS
from support.running_site import Site, retried, wait_for

EVERY_MINUTE = "* * * * *"
PREVIEW = "preview"
LONG_AGO = "2026-01-01T00:00:00Z"
ENDED = ("success", "failed")
TAKES_S = 600.0  # at most, a step on a machine that is busy with much else


@dataclass
class Night:
    """A run as it stood: its state, its batches (the oldest first), the batches that the view has shown until then, and
    the logs of its failed tasks."""

    run_id: str
    state: str
    batches: list[dict[str, Any]]
    published: list[int]
    said: dict[str, str] = field(default_factory=dict)


@dataclass
class Nights:
    """Moments by what was done just before, every run at the end, and the provider's books."""

    moments: dict[str, Night] = field(default_factory=dict)
    runs: list[Night] = field(default_factory=list)
    books: dict[str, Any] = field(default_factory=dict)
    rows_of_preview: int = 0


def tell(site: Site) -> Nights:
    """Some short nights."""
    told = Nights()

    def ended(what: str, run_id: str) -> None:
        site.wait_run(NIGHTS, run_id, *ENDED, timeout_s=TAKES_S)
        told.moments[what] = night(site, run_id)

    site.client.unpause(NIGHTS)
    wait_for(lambda: bool(runs(site, "scheduled")), TAKES_S, "the first night")
    ended("scheduled", runs(site, "scheduled")[-1])

    cancelled = cancelled_night(site, "2")
    ended("cancelled", cancelled)
    site.client.clear(NIGHTS, cancelled, list({one["task_id"] for one in site.instances(NIGHTS, cancelled)}))
    site.client.unpause(NIGHTS)
    ended("cleared", cancelled)

    cancelled = cancelled_night(site, "3")
    site.client.backfill(NIGHTS, site.client.dag_run(NIGHTS, cancelled)["logical_date"])
    site.client.unpause(NIGHTS)
    ended("backfilled", cancelled)

    site.client.trigger(NIGHTS, {"limit": 2}, run_id=PREVIEW)
    wait_for(lambda: is_backfilled(site, LONG_AGO), TAKES_S, "the backfill before it to be marked as complete")
    ended("preview", PREVIEW)
    ended("backfilled from before", runs(site, "backfill")[0])

    site.client.pause(NIGHTS)
    of_preview = told.moments["preview"].batches[-1]["batch_id"]
    told.rows_of_preview = site.sql("select count(*) from nightmill.rows_nights where batch_id = %s", of_preview)[0][0]
    told.runs = [one for run_id in runs(site) if (one := night(site, run_id)).state in ENDED]
    told.books = site.nights_provider.books()
    return told


def runs(site: Site, kind: str = "") -> list[str]:
    """The run ids, the newest first."""
    found = retried(lambda: site.client.dag_runs(NIGHTS))
    return [one["dag_run_id"] for one in found if one["dag_run_id"].startswith(kind)]


def is_backfilled(site: Site, logical_date: str) -> bool:
    """A DAG has one backfill at a time, and Airflow looks each half a minute whether it is complete."""
    try:
        site.client.backfill(NIGHTS, logical_date)
    except AirflowRefused as refusal:
        if refusal.status != 409:
            raise
        return False
    return True


def cancelled_night(site: Site, version: str) -> str:
    """A night that a person marks as failed while its new documents are at the provider, with the DAG paused. The
    answers come after all, and maintenance keeps them."""
    site.nights_provider.faults(hold=True)
    site.source("update nights set version = %s, body = body || ' again' where weight <= 2", version)
    held: list[str] = []

    def is_held() -> bool:
        held[:] = runs(site, "scheduled")[:1]
        return site.states(NIGHTS, held[0]).get("run_shard[0]") == "deferred"

    wait_for(is_held, TAKES_S, "a night that the provider holds back", lambda: site.states(NIGHTS, held[0]))
    site.client.pause(NIGHTS)
    site.client.set_run_state(NIGHTS, held[0], "failed")
    wait_for(lambda: site.batch(held[0])["state"] == "CANCELLED", TAKES_S, "the night's batch to be cancelled")
    site.nights_provider.faults(hold=False)
    left = (
        "select count(*) from nightmill.provider_batch where batch_id = %s and state not in ('COLLECTED', 'ABANDONED')"
    )

    def is_wound_down() -> bool:
        batch_id = site.batch(held[0])["batch_id"]
        wind_down.run(environment_of(site.running.env), {}, batch_id=batch_id)
        return site.sql(left, batch_id) == [(0,)]

    wait_for(is_wound_down, TAKES_S, "the night's answers to be kept")
    return held[0]


def night(site: Site, run_id: str) -> Night:
    """A run as it stands."""
    batches = "select to_jsonb(batch) from nightmill.batch where dag_id = %s and run_id = %s order by incarnation"
    published = "select batch_id from nightmill.publication where view_name = 'nights' order by publish_seq"
    return Night(
        run_id,
        state=str(retried(lambda: site.client.dag_run(NIGHTS, run_id))["state"]),
        batches=[one for (one,) in site.sql(batches, NIGHTS, run_id)],
        published=[one for (one,) in site.sql(published)],
        said={
            one["task_id"]: site.log_of(NIGHTS, run_id, one["task_id"], one["map_index"])
            for one in site.instances(NIGHTS, run_id)
            if one["state"] == "failed"
        },
    )

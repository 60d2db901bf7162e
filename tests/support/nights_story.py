"""The job `nights`, whose view has one batch of each night, in the hands of a person: told once, beside other tests.

1. Airflow catches up three nights of the past, two at a time. The first two wait for the provider together; somebody
   cancels the second.
2. The first night's publish is killed between its commit and its end.
3. The second night is cleared.
4. Rows of the first night change, and it is backfilled. Then its freeze_snapshot alone is cleared.
5. Somebody runs the last two nights as one by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import psycopg

from nightmill.services.connections import environment_of
from nightmill.upkeep import wind_down
from support.foreign_jobs import NIGHTS, fill_source, write_job
from support.running_site import Site, kill, retried, wait_for

DAY = timedelta(days=1)
ITEMS = 6  # of each night
BY_HAND = "two-nights"
INTERVAL = ("data_interval_start", "data_interval_end")
QUERY = "select id, version, tenant, body, weight from nights"
TAKES_S = 600.0  # at most, a step on a machine that is busy with much else
HELD_COMMIT = """
create function public.hold_commit() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock(470011); return null; end';
create constraint trigger hold_commit after update on nightmill.batch deferrable initially deferred for each row
    when (new.view_name = 'nights' and new.state = 'PUBLISHED') execute function public.hold_commit();
"""


@dataclass
class Night:
    """A run as it stood: its state, its batches (the oldest first), its asset events, and the logs of its failed
    tasks."""

    run_id: str
    state: str
    batches: list[dict[str, Any]]
    events: list[dict[str, Any]]
    said: dict[str, str] = field(default_factory=dict)


@dataclass
class Nights:
    """Moments by what was done just before, the batch of each night that readers saw at the end and how many rows of
    it, and the provider's books."""

    moments: dict[str, Night] = field(default_factory=dict)
    together: set[str] = field(default_factory=set)
    shown: list[tuple[datetime, int, int]] = field(default_factory=list)
    newest_good: list[tuple[datetime, int, int]] = field(default_factory=list)
    parts: list[tuple[int, int]] = field(default_factory=list)
    books: dict[str, Any] = field(default_factory=dict)


def prepare(jobs: Path, source_dsn: str) -> None:
    """The job, and documents of three nights that are over; the next one is far off."""
    over = (datetime.now(UTC) - timedelta(hours=2)).replace(minute=0, second=0, microsecond=0)
    first = over - 3 * DAY
    dag = f"{{start_date: {first.date()}, catchup: true, max_active_runs: 2, retry_delay_s: 1}}"
    write_job(jobs, "nights", "nights_provider", shards=1, schedule=f"0 {over.hour} * * *", more=f"dag: {dag}\n")
    job_yaml = jobs / "nights" / "job.yaml"
    nightly = f"{QUERY} where night >= %(data_interval_start)s and night < %(data_interval_end)s"
    text = job_yaml.read_text().replace(QUERY, nightly).replace("{view: nights}", "{view: nights, mode: by_interval}")
    job_yaml.write_text(text)
    fill_source(source_dsn, "nights", 3 * ITEMS)
    with psycopg.connect(source_dsn) as conn:
        conn.execute("alter table nights add night timestamptz")
        conn.execute("update nights set night = %s + (weight - 1) / %s * interval '1 day'", (first, ITEMS))


def tell(site: Site) -> Nights:
    """Three nights, and what is done to them."""
    told = Nights()

    def ended(what: str, run_id: str) -> None:
        site.wait_run(NIGHTS, run_id, "success", "failed", timeout_s=TAKES_S)
        told.moments[what] = night(site, run_id)

    site.nights_provider.faults(hold=True)
    site.client.unpause(NIGHTS)
    first, second = two_at_once(site)
    told.together = {site.batch(one)["state"] for one in (first, second)}
    site.client.set_run_state(NIGHTS, second, "failed")
    wait_for(lambda: site.batch(second)["state"] == "CANCELLED", TAKES_S, "the night's batch to be cancelled")
    told.moments["cancelled"] = night(site, second)

    with publish_killed(site, first):
        site.nights_provider.faults(hold=False)
    told.moments["killed"] = night(site, first)
    keep_answers(site, second)
    ended("tried again", first)
    wait_for(lambda: len(runs(site)) == 3, TAKES_S, "the last night")
    third = runs(site)[2]
    ended("last", third)
    site.client.clear(NIGHTS, second, list({one["task_id"] for one in site.instances(NIGHTS, second)}))
    ended("cleared", second)

    site.source("update nights set version = '2', body = body || ' again' where weight <= 2")
    site.source("delete from nights where weight = 3")
    site.client.backfill(NIGHTS, retried(lambda: site.client.dag_run(NIGHTS, first))["logical_date"])
    both = {name: site.batch(one)[name] for name, one in zip(INTERVAL, (second, third), strict=True)}
    site.client.trigger(NIGHTS, both, run_id=BY_HAND)
    wait_for(lambda: site.batch(first)["incarnation"] == 2, TAKES_S, "the backfill's batch")
    ended("backfilled", first)
    site.client.clear(NIGHTS, first, ["freeze_snapshot"])
    site.wait_run(NIGHTS, first, "queued", "running")
    ended("cleared alone", first)
    ended("two in one", BY_HAND)
    look(site, told)
    return told


def runs(site: Site) -> list[str]:
    """The ids of the scheduled runs, the first night first."""
    found = retried(lambda: site.client.dag_runs(NIGHTS))
    found = [one for one in found if one["run_type"] != "manual"]
    return [one["dag_run_id"] for one in sorted(found, key=lambda one: str(one["data_interval_start"]))]


def two_at_once(site: Site) -> list[str]:
    """The runs of the first two nights, once both wait for the provider."""

    def waiting() -> list[str]:
        return [one for one in runs(site)[:2] if site.states(NIGHTS, one).get("run_shard[0]") == "deferred"]

    wait_for(lambda: len(waiting()) == 2, TAKES_S, "two nights that the provider holds back", waiting)
    return waiting()


@contextmanager
def publish_killed(site: Site, run_id: str) -> Iterator[None]:
    """Kill the run's publish while it waits for the answer to its commit, which comes to pass all the same."""
    commits = "select count(*) from pg_stat_activity where wait_event = 'advisory' and query ilike 'commit%'"
    with psycopg.connect(site.running.server.dsn("nightmill"), autocommit=True) as conn:
        conn.execute("select pg_advisory_lock(470011)")
        site.sql(HELD_COMMIT)
        yield
        wait_for(lambda: site.sql(commits) != [(0,)], TAKES_S, "publish to commit", lambda: site.states(NIGHTS, run_id))
        working: list[tuple[int, int]] = []

        def is_found() -> bool:
            working[:] = site.working(NIGHTS, run_id, "publish")
            return bool(working)

        wait_for(is_found, TAKES_S, "the process of publish")
        kill([psutil.Process(pid) for _, pid in working])
    wait_for(lambda: site.batch(run_id)["state"] == "PUBLISHED", TAKES_S, "the commit")
    site.sql("drop trigger hold_commit on nightmill.batch; drop function public.hold_commit()")


def keep_answers(site: Site, run_id: str) -> None:
    """The answers of a cancelled night come after all, and maintenance keeps them."""
    left = (
        "select count(*) from nightmill.provider_batch where batch_id = %s and state not in ('COLLECTED', 'ABANDONED')"
    )

    def is_wound_down() -> bool:
        batch_id = site.batch(run_id)["batch_id"]
        wind_down.run(environment_of(site.running.env), {}, batch_id=batch_id)
        return site.sql(left, batch_id) == [(0,)]

    wait_for(is_wound_down, TAKES_S, "the night's answers to be kept")


def night(site: Site, run_id: str) -> Night:
    """A run as it stands."""
    batches = "select to_jsonb(batch) from nightmill.batch where dag_id = %s and run_id = %s order by incarnation"
    return Night(
        run_id,
        state=str(retried(lambda: site.client.dag_run(NIGHTS, run_id))["state"]),
        batches=[one for (one,) in site.sql(batches, NIGHTS, run_id)],
        events=[one["extra"] for one in retried(lambda: site.client.asset_events(NIGHTS, run_id))],
        said={
            one["task_id"]: site.log_of(NIGHTS, run_id, one["task_id"], one["map_index"])
            for one in site.instances(NIGHTS, run_id)
            if one["state"] == "failed"
        },
    )


def look(site: Site, told: Nights) -> None:
    """What readers see at the end, and what they should."""
    rows = site.sql("select data_interval_start, batch_id, count(*) from results.nights group by 1, 2 order by 1")
    good = site.sql(
        "select distinct on (data_interval_start, data_interval_end) data_interval_start, batch_id, item_count "
        "from nightmill.batch where view_name = 'nights' and state = 'PUBLISHED' "
        "order by data_interval_start, data_interval_end, frozen_at desc"
    )
    listed = site.sql(
        "select publish_seq, part.batch_id from nightmill.publication_part as part "
        "join nightmill.publication using (publish_seq) where view_name = 'nights'"
    )
    told.shown, told.newest_good, told.parts = rows, good, listed  # type: ignore[assignment]
    told.books = site.nights_provider.books()

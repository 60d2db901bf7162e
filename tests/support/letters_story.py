"""The job `letters` in the hands of a person who marks tasks as they like: told once, beside other tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from support.foreign_jobs import LETTERS
from support.running_site import Site, read_books, set_faults

DRY, MARKS, AGAIN = "dry", "marks", "again"
TOO_STRICT = "expectations:\n  - {type: ExpectTableRowCountToBeBetween, min_value: 1000}\n"
LOOSENED = "expectations:\n  - {type: ExpectTableRowCountToBeBetween, min_value: 1}\n"


@dataclass
class Moment:
    """The batch, the tasks' states and one task's log at some point of the story."""

    batch: dict[str, Any]
    states: dict[str, str]
    log: str = ""


@dataclass
class Letters:
    """Moments by what was done just before, and the provider's books at the end of each run."""

    moments: dict[str, Moment] = field(default_factory=dict)
    books: dict[str, dict[str, Any]] = field(default_factory=dict)
    open_shard: int = 0


def tell(site: Site) -> Letters:
    """Four minutes of a careless day."""
    told = Letters()
    provider = f"http://127.0.0.1:{site.running.ports['simulator']}"

    def note(what: str, run_id: str, task: str | None = None) -> None:
        log = site.log_of(LETTERS, run_id, task) if task else ""
        told.moments[what] = Moment(site.batch(run_id), site.states(LETTERS, run_id), log)

    def run(run_id: str, conf: dict[str, Any] | None = None) -> None:
        site.client.trigger(LETTERS, conf, run_id=run_id)

    run(DRY, {"dry_run": True})
    site.wait_run(LETTERS, DRY, "success", "failed")
    note("dry run", DRY, "preflight")
    told.books[DRY] = read_books(provider)

    set_faults(provider, hold=True)
    run(MARKS)
    for place in (0, 1):
        site.wait_state(LETTERS, MARKS, f"run_shard[{place}]", "deferred")
    told.open_shard = site.sql(
        "select min(shard_id) from nightmill.shard where batch_id = %s", site.batch(MARKS)["batch_id"]
    )[0][0]
    site.client.set_task_state(LETTERS, MARKS, "run_shard", "success", 0)
    set_faults(provider, hold=False)
    site.wait_run(LETTERS, MARKS, "failed")
    note("run_shard marked success", MARKS, "reconcile")

    (site.jobs / "letters" / "checks.yaml").write_text(TOO_STRICT)
    site.client.clear(LETTERS, MARKS, [("run_shard", 0)], downstream=True)
    site.wait_state(LETTERS, MARKS, "check_staging", "failed")
    site.wait_run(LETTERS, MARKS, "failed")
    note("a check failed", MARKS, "check_staging")

    site.client.set_task_state(LETTERS, MARKS, "check_staging", "success")
    site.client.clear(LETTERS, MARKS, ["compare"], downstream=True)
    site.wait_state(LETTERS, MARKS, "publish", "failed")
    site.wait_run(LETTERS, MARKS, "failed")
    note("check_staging marked success", MARKS, "publish")

    site.client.set_task_state(LETTERS, MARKS, "publish", "success")
    site.client.clear(LETTERS, MARKS, ["report"])
    site.wait_state(LETTERS, MARKS, "report", "failed")
    site.wait_run(LETTERS, MARKS, "failed")
    note("publish marked success", MARKS, "report")

    (site.jobs / "letters" / "checks.yaml").write_text(LOOSENED)
    site.client.clear(LETTERS, MARKS, ["check_staging"], downstream=True)
    site.wait_run(LETTERS, MARKS, "success", timeout_s=120)
    note("check loosened and cleared", MARKS)
    told.books[MARKS] = read_books(provider)

    run(AGAIN)
    site.wait_run(LETTERS, AGAIN, "success", "failed")
    note("second run", AGAIN)
    told.books[AGAIN] = read_books(provider)
    return told

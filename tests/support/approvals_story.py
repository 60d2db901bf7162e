"""The job `permits`, whose results a person approves: told once, beside other tests.

1. One run is approved, and one is rejected.
2. Somebody marks the task as success, then clears it and approves.
3. Nobody answers: the batch waits. Cleared with a default, the time-out approves.
4. A preview of two rows is published by nightmill_publish, once somebody has confirmed that it is one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from support.foreign_jobs import PERMITS
from support.running_site import Site, retried, wait_for

PUBLISH = "nightmill_publish"
SOON = 0.001  # hours
TAKES_S = 600.0  # at most, a step on a machine that is busy with much else


@dataclass
class Moment:
    """The newest batch of the story, the tasks' states, what the view shows, and a task's log at some point."""

    batch: dict[str, Any]
    states: dict[str, str]
    shown: int | None
    log: str = ""


@dataclass
class Approvals:
    """Moments by what was done just before; questions as Airflow shows them; events of nightmill_publish."""

    moments: dict[str, Moment] = field(default_factory=dict)
    questions: list[dict[str, Any]] = field(default_factory=list)
    verdicts: dict[int, list[tuple[str, str | None]]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)


def tell(site: Site) -> Approvals:
    """Six short runs."""
    told = Approvals()

    def note(what: str, run_id: str, task: str | None = None, dag_id: str = PERMITS) -> None:
        batch = site.batch(run_id if dag_id == PERMITS else "preview")
        shown = site.sql("select batch_id from nightmill.published where view_name = 'permits'")
        log = site.log_of(dag_id, run_id, task) if task else ""
        told.moments[what] = Moment(batch, site.states(dag_id, run_id), shown[0][0] if shown else None, log)

    def ended(run_id: str, state: str, dag_id: str = PERMITS) -> None:
        site.wait_run(dag_id, run_id, state, timeout_s=TAKES_S)

    settings(site, timeout_h=24)
    site.client.trigger(PERMITS, run_id="approved")
    told.questions.append(asked(site, PERMITS, "approved"))
    note("asked", "approved")
    answer(site, PERMITS, "approved", "Approve")
    ended("approved", "success")
    note("approved", "approved")

    site.client.trigger(PERMITS, run_id="rejected")
    asked(site, PERMITS, "rejected")
    answer(site, PERMITS, "rejected", "Reject", reason="the dates are wrong")
    ended("rejected", "failed")
    note("rejected", "rejected", "approve")

    site.client.trigger(PERMITS, run_id="permit-marked")
    asked(site, PERMITS, "permit-marked")
    site.client.set_task_state(PERMITS, "permit-marked", "approve", "success")
    ended("permit-marked", "failed")
    note("marked success", "permit-marked", "publish")
    site.client.clear(PERMITS, "permit-marked", ["approve"], downstream=True)
    asked(site, PERMITS, "permit-marked")
    answer(site, PERMITS, "permit-marked", "Approve")
    ended("permit-marked", "success")
    note("cleared after it was marked", "permit-marked")

    settings(site, timeout_h=SOON)
    site.client.trigger(PERMITS, run_id="silent")
    ended("silent", "failed")
    note("nobody answered", "silent", "approve")
    settings(site, timeout_h=SOON, on_timeout="approve")
    site.client.clear(PERMITS, "silent", ["approve"], downstream=True)
    ended("silent", "success")
    note("cleared with a default", "silent")

    settings(site, timeout_h=24)
    site.client.trigger(PERMITS, {"limit": 2}, run_id="preview")
    ended("preview", "success")
    note("preview", "preview")
    wanted = {"batch": site.batch("preview")["batch_id"]}
    site.client.trigger(PUBLISH, wanted, run_id="unconfirmed")
    ended("unconfirmed", "failed", PUBLISH)
    note("not confirmed", "unconfirmed", "take_up", PUBLISH)
    site.client.trigger(PUBLISH, wanted | {"confirm_narrowed": True}, run_id="confirmed")
    told.questions.append(asked(site, PUBLISH, "confirmed"))
    answer(site, PUBLISH, "confirmed", "Approve")
    ended("confirmed", "success", PUBLISH)
    note("preview published", "confirmed", dag_id=PUBLISH)
    site.client.clear(PUBLISH, "confirmed", ["check_staging", "approve", "publish"], downstream=True)
    ended("confirmed", "success", PUBLISH)
    note("cleared at rest", "confirmed", "approve", PUBLISH)

    told.events = site.client.asset_events(PUBLISH, "confirmed")
    rows = site.sql(
        "select batch_id, verdict, decided_by from nightmill.gate_verdict join nightmill.batch using (batch_id) "
        "where gate = 'approve' and job = 'permits' and verdict <> 'waiting' order by verdict_id"
    )
    for batch_id, verdict, by in rows:
        told.verdicts.setdefault(batch_id, []).append((verdict, by))
    return told


def settings(site: Site, **changes: Any) -> None:
    """What job.yaml says of approval from now on."""
    file = site.jobs / "permits" / "job.yaml"
    kept = [line for line in file.read_text().splitlines() if not line.startswith("approve:")]
    said = ", ".join(f"{name}: {value}" for name, value in changes.items())
    file.write_text("\n".join([*kept, f"approve: {{{said}}}"]) + "\n")


def path_of(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/approve/-1/hitlDetails"


def asked(site: Site, dag_id: str, run_id: str) -> dict[str, Any]:
    """The question, once the task waits for its answer."""
    site.wait_state(dag_id, run_id, "approve", "awaiting_input", timeout_s=TAKES_S)
    return dict(retried(lambda: site.client._send("GET", path_of(dag_id, run_id))))


def answer(site: Site, dag_id: str, run_id: str, chosen: str, **given: Any) -> None:
    """As a person does, who takes a moment, and answers again where the question stands there again: an answer that
    Airflow gets before its scheduler has seen the asking process end makes it try the task again."""
    body = {"chosen_options": [chosen], "params_input": given}

    def is_taken() -> bool:
        state = site.states(dag_id, run_id)["approve"]
        if state == "awaiting_input":
            time.sleep(3)
            site.client._send("PATCH", path_of(dag_id, run_id), json=body)
        return state in ("success", "failed")

    wait_for(is_taken, TAKES_S, f"the answer to {run_id} to be taken", lambda: site.states(dag_id, run_id))

"""Somebody without a mouse, with nothing but Airflow's UI: trigger with the form, see why the run waits, find the view.

Screenshots are kept in NIGHTMILL_ARTEFACTS (default .nightmill/artefacts).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from support.foreign_jobs import CANARY, POSTCARDS, PROMPT_CANARY
from support.keyboard import Keyboard, at_the_keyboard, browser_path
from support.running_site import Site, retried, wait_for

from dev.stack.airflow_settings import ADMIN_USER
from nightmill.domain.addresses import batch_page, shard_page

ITEMS, NOTE = 5, "seen from a keyboard"


@pytest.fixture(scope="module")
def person() -> Iterator[Keyboard]:
    executable = browser_path()
    if executable is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with at_the_keyboard(executable) as keyboard:
        yield keyboard


@pytest.fixture(scope="module")
def run_id(site: Site, person: Keyboard) -> str:
    """The run that the person triggers with the form; its provider holds the batch back."""
    site.slow_provider.faults(hold=True)
    person.open(f"{site.running.ui}/")
    person.fill("Username", ADMIN_USER)
    person.fill("Password", site.running.admin_password)
    person.page.keyboard.press("Enter")
    person.follow("Dags")
    person.follow(href=f"/dags/{POSTCARDS}")
    person.at(f"/dags/{POSTCARDS}")
    person.read("Latest Dag Version")
    person.follow("Trigger Dag")
    person.read("This run")
    person.follow("This run")
    person.fill("element_note", NOTE)
    person.shot("trigger-form")
    person.follow("Trigger")
    runs: list[str] = []

    def triggered() -> bool:
        runs[:] = [one["dag_run_id"] for one in retried(lambda: site.client.dag_runs(POSTCARDS))]
        return bool(runs)

    wait_for(triggered, 120, "the run", person.words)
    return runs[0]


@pytest.fixture(scope="module")
def waiting(site: Site, person: Keyboard, run_id: str) -> Keyboard:
    """The person has followed the waiting shard's link."""
    site.wait_state(POSTCARDS, run_id, "run_shard[0]", "deferred")
    person.at(f"/dags/{POSTCARDS}/runs/")
    person.follow(href=f"/runs/{run_id}/tasks/run_shard/mapped")
    person.follow(href="/mapped/0")
    person.read("Deferred")
    person.shot("waiting-shard")
    person.follow("Details", href="/mapped/0/details")
    person.follow("Provider batch evidence")
    person.at("/nightmill/shard?")
    return person


def test_what_was_typed_into_the_form_is_what_the_batch_was_made_with(site: Site, run_id: str) -> None:
    wait_for(lambda: site.batch(run_id).get("item_count") is not None, 120, "the manifest")
    batch = site.batch(run_id)
    assert (batch["item_count"], batch["note"]) == (ITEMS, NOTE)


def test_a_waiting_shards_link_says_why_it_waits(site: Site, waiting: Keyboard) -> None:
    said = waiting.reread("or as soon as the provider reports a change")  # its task can be at work just now
    waiting.shot("why-it-waits")
    ((provider_id,),) = site.sql(
        "select provider_id from nightmill.provider_batch join nightmill.batch using (batch_id) where dag_id = %s",
        POSTCARDS,
    )
    assert provider_id in said
    assert re.search(r"says (validating|in_progress), for .*; \d of 5 requests are done", said)
    assert "Why it waits" in said
    assert CANARY not in said and PROMPT_CANARY not in said


def test_from_there_tab_and_enter_lead_to_the_batch_and_its_note(waiting: Keyboard) -> None:
    waiting.follow("Batch", part=True)
    waiting.at("/nightmill/batch?")
    waiting.read("1 shard: 1 under way.", "results.postcards shows nothing so far", NOTE)
    waiting.shot("waiting-batch")


def test_nobody_who_is_not_logged_in_sees_any_of_it(site: Site, run_id: str, waiting: Keyboard) -> None:
    ((shard_id,),) = site.sql("select shard_id from nightmill.shard join nightmill.batch using (batch_id) "
                              "where dag_id = %s", POSTCARDS)  # fmt: skip
    for address in (batch_page(POSTCARDS, run_id), shard_page(POSTCARDS, shard_id)):
        answer = httpx.get(f"{site.running.ui}{address}", trust_env=False, timeout=30)
        assert answer.status_code == 401
        assert "postcards" not in answer.text


def test_after_the_run_the_reports_link_names_the_published_view(site: Site, run_id: str, waiting: Keyboard) -> None:
    site.slow_provider.faults(hold=False)
    site.wait_run(POSTCARDS, run_id, "success", "failed")
    waiting.open(f"{site.running.ui}/dags/{POSTCARDS}/runs/{run_id}")
    waiting.follow(href=f"/runs/{run_id}/tasks/report")
    waiting.follow("Details", href="/tasks/report/details")
    waiting.follow("Receipt")
    waiting.at("/nightmill/batch?")
    waiting.read("is PUBLISHED", "results.postcards shows this batch since", "select * from results.postcards")
    waiting.shot("published-view")
    assert site.sql("select count(*) from results.postcards") == [(ITEMS,)]
    assert len(waiting.taken) >= 5 and all(shot.stat().st_size > 5_000 for shot in waiting.taken)

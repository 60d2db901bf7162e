"""No document text, prompt, answer or key outside the payload store, the provider and the ledger.

Runs last: it looks at what all other runs left, retries after kills and failed lines that quote a document included.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import httpx
import pytest
from support.foreign_jobs import CANARY, PROMPT_CANARY
from support.letters_story import Letters
from support.running_site import PROVIDER_KEY, Site

from dev.stack.airflow_settings import ADMIN_USER
from dev.stack.postgres_account import binaries
from nightmill.domain.addresses import compare_page

SECRETS = (CANARY, PROMPT_CANARY, PROVIDER_KEY)


@pytest.fixture(autouse=True)
def _all_runs_are_over(letters: Future[Letters]) -> None:
    letters.result(timeout=300)


def found_in(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


def files_with_secrets(root: Path) -> Iterator[tuple[Path, list[str]]]:
    for path in root.rglob("*"):
        if path.is_file() and (found := found_in(path.read_text(errors="replace"))):
            yield path, found


def test_the_canaries_went_through_the_whole_job(site: Site) -> None:
    assert site.sql("select count(*) > 40 from results.notes where title like %s", f"%{CANARY}%") == [(True,)]
    assert site.sql("select count(*) from nightmill.dead_letter where message like %s", f"%{CANARY}%") == [(1,)]


def test_logs_hold_none_of_them(site: Site) -> None:
    settings = site.stack.settings
    logs = [path for path in (settings.airflow_home / "logs").rglob("*.log") if "run_shard" in str(path)]
    assert len(logs) >= 6
    assert list(files_with_secrets(settings.airflow_home)) == []
    assert list(files_with_secrets(settings.logs)) == []


def test_the_airflow_database_holds_none_of_them(site: Site) -> None:
    """XCom, rendered fields, triggers, serialised DAGs, asset events, log rows: all of it."""
    server = site.running.server
    command = [str(binaries() / "pg_dump"), "--data-only", "--dbname", server.dsn("airflow")]
    dump = subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace")
    assert "COPY public.xcom " in dump
    assert "items" in dump and "tokens" in dump
    assert found_in(dump) == []


def test_what_compare_records_and_its_pages_hold_none_of_them(site: Site) -> None:
    verdicts = site.sql(
        "select batch_id, dag_id, details::text from nightmill.gate_verdict join nightmill.batch using (batch_id) "
        "where gate = 'compare' and verdict = 'passed'"
    )
    assert len(verdicts) > 2
    assert [batch_id for batch_id, _, details in verdicts if found_in(details)] == []
    with httpx.Client(base_url=site.running.ui, trust_env=False, timeout=30) as browser:
        login = {"username": ADMIN_USER, "password": site.running.admin_password}
        token = browser.post("/auth/token", json=login).json()["access_token"]
        browser.headers["Authorization"] = f"Bearer {token}"
        for batch_id, dag_id, _ in verdicts:
            page = browser.get(compare_page(dag_id, batch_id))
            assert page.status_code == 200
            assert "No limit is broken." in page.text
            assert found_in(page.text) == []
    stranger = httpx.get(
        f"{site.running.ui}{compare_page(verdicts[0][1], verdicts[0][0])}", trust_env=False, timeout=30
    )
    assert stranger.status_code == 401


def test_temporary_files_of_finished_and_of_killed_tasks_are_gone(site: Site) -> None:
    assert list(files_with_secrets(Path(os.environ["TMPDIR"]))) == []

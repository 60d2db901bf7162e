"""One real stack for all end-to-end tests, with jobs in a foreign directory: `notes` asks another provider under a key,
`letters` the stack's own, `postcards` and `parcels` one that their tests hold back; `nights` and `permits` theirs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support.approvals_story import PUBLISH, Approvals
from support.approvals_story import tell as tell_approvals
from support.foreign_jobs import ITEMS, LETTERS, NIGHTS, NOTES, PARCELS, PERMITS, POSTCARDS, fill_source, write_job
from support.letters_story import Letters, tell
from support.nights_story import Nights, prepare
from support.nights_story import tell as tell_nights
from support.running_site import PROVIDER_KEY, OtherProvider, Site, json_connection

from dev.stack.postgres import Server
from dev.stack.settings import StackSettings
from dev.stack.stack import Stack

BATCH_S = 12.0


@pytest.fixture(scope="package")
def site(postgres_server: Server) -> Iterator[Site]:
    root = Path(tempfile.mkdtemp(prefix="nightmill-e2e-"))
    postgres_server.create_login("other_reader")
    postgres_server.create_database("other_source", owner="other_reader")
    source = postgres_server.dsn("other_source", "other_reader")
    fill_source(source, "notes", ITEMS)
    fill_source(source, "letters", 20)
    fill_source(source, "postcards", 5)
    fill_source(source, "parcels", 24)
    fill_source(source, "permits", 4)
    write_job(root / "my_jobs", "notes", "other_provider", shards=4)
    write_job(root / "my_jobs", "letters", "nightmill_provider", shards=2)
    write_job(root / "my_jobs", "postcards", "slow_provider", shards=1)
    write_job(root / "my_jobs", "parcels", "slow_provider", shards=2)
    prepare(root / "my_jobs", source)
    write_job(root / "my_jobs", "permits", "permits_provider", shards=1, more="approve: {}\n")
    (root / "tmp").mkdir()
    provider = OtherProvider.start(root / "provider", BATCH_S)
    slow_provider = OtherProvider.start(root / "slow-provider", batch_s=0)
    nights_provider = OtherProvider.start(root / "nights-provider", batch_s=0)
    permits_provider = OtherProvider.start(root / "permits-provider", batch_s=0)
    stack = Stack(StackSettings(home=root / "home", batch_seconds=BATCH_S))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NIGHTMILL_JOBS_PATH", str(root / "my_jobs"))
        patch.setenv("TMPDIR", str(root / "tmp"))
        patch.setenv("AIRFLOW_CONN_OTHER_SOURCE", source.replace("postgresql://", "postgres://"))
        providers = {"OTHER": provider, "SLOW": slow_provider, "NIGHTS": nights_provider, "PERMITS": permits_provider}
        for name, one in providers.items():
            connection = json_connection(conn_type="generic", host=f"{one.url}/v1", password=PROVIDER_KEY)
            patch.setenv(f"AIRFLOW_CONN_{name}_PROVIDER", connection)
        try:
            running = stack.up()
            with running.client() as client:
                for dag_id in (NOTES, LETTERS, POSTCARDS, PARCELS, PERMITS, PUBLISH):
                    client.wait_for_dag(dag_id)
                    client.unpause(dag_id)
                client.wait_for_dag(NIGHTS)  # its story lets it run
                yield Site(stack, running, client, provider, slow_provider, nights_provider, root / "my_jobs", source)
        finally:
            if os.environ.get("NIGHTMILL_KEEP") != "1":
                stack.down()
                provider.stop()
                slow_provider.stop()
                nights_provider.stop()
                permits_provider.stop()
                shutil.rmtree(root)
                postgres_server.drop_database("other_source")


@pytest.fixture(scope="package")
def letters(site: Site) -> Iterator[Future[Letters]]:
    """What came of the job `letters`, which runs beside the faults of `notes`."""
    with site.running.client() as client, ThreadPoolExecutor(1) as pool:
        yield pool.submit(tell, replace(site, client=client))


@pytest.fixture(scope="package")
def nights(site: Site) -> Iterator[Future[Nights]]:
    """What came of the nights of the job `nights`, which pass beside the other tests."""
    with site.running.client() as client, ThreadPoolExecutor(1) as pool:
        yield pool.submit(tell_nights, replace(site, client=client))


@pytest.fixture(scope="package")
def approvals(site: Site) -> Iterator[Future[Approvals]]:
    """What came of the job `permits`, whose results a person approves beside the other tests."""
    with site.running.client() as client, ThreadPoolExecutor(1) as pool:
        yield pool.submit(tell_approvals, replace(site, client=client))


@pytest.fixture(scope="package", autouse=True)
def _started(letters: Future[Letters], nights: Future[Nights], approvals: Future[Approvals]) -> None:
    """Start them before the first test."""

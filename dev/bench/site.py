"""Everything that a benchmark runs on: a Postgres of its own, a source table, the local provider, a job folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from dev.stack.postgres import Server, start_server
from nightmill.jobs import job_folders
from nightmill.jobs.contract import JobDefinition
from nightmill.providers.connection import ProviderConnection
from nightmill.services.environment import Environment
from nightmill.storage import views
from nightmill.storage.migrate import init_db
from nightmill.storage.payloads import PayloadStore

WRITER = "bench_writer"
WORDS = (
    "the contract party shall provide notice of termination in writing within thirty days after receipt unless "
    "otherwise agreed and each supplier warrants that goods delivered under this order conform to specification "
    "price invoice payment delay interest account customer support ticket printer network password reset request "
    "closed open urgent please reply thank you regards team service update version release error code line"
).split()

JOB_YAML = """
description: One kilobyte of text per item, an instant provider.
source:
  conn_id: source
  query: select id, version, body from documents
  columns: {id: id, version: version, text: body}
provider:
  conn_id: provider
  model: echo-1
  parameters: {max_completion_tokens: 400}
  poll_interval_s: 1
breaker: {pilot_above_items: null}
publish: {view: bench}
"""
PROMPT = "Summarise this document.\n\n{{ body }}\n"
OUTPUT = """
from pydantic import BaseModel, ConfigDict


class Output(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str
    topic: str
    pages: int
"""


@dataclass(frozen=True)
class Site:
    """Where a benchmark's parts are. Handed to worker processes as arguments."""

    home: Path
    admin_dsn: str
    writer_dsn: str
    base_url: str
    postmaster: int

    @property
    def environment(self) -> Environment:
        """The stages' environment."""
        return Environment(
            ledger_dsn=self.writer_dsn, payloads=PayloadStore(f"file://{self.home / 'objects'}"), connections=self
        )

    def database(self, conn_id: str) -> str:
        """The source is in the same server."""
        return self.admin_dsn

    def provider(self, conn_id: str, timeout_s: float) -> ProviderConnection:
        """The local provider."""
        return ProviderConnection(conn_id, self.base_url, "bench", timeout_s=timeout_s)

    @property
    def job(self) -> JobDefinition:
        """The benchmark's job."""
        return job_folders.read(self.home / "jobs" / "bench")

    def server_cpu_s(self) -> float:
        """CPU seconds of the Postgres server so far: its processes, and the ended ones that it has waited for."""
        server = psutil.Process(self.postmaster)
        own = server.cpu_times()
        total = own.user + own.system + own.children_user + own.children_system
        for backend in server.children():
            try:
                times = backend.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system
        return total


@contextmanager
def site(items: int) -> Iterator[Site]:
    """A site with `items` source rows of about 1 kB. Everything is stopped and deleted afterwards."""
    home = Path(tempfile.mkdtemp(prefix="nightmill-bench-"))
    server = start_server(home / "postgres", durable=False)
    provider = None
    try:
        provider, base_url = start_provider(home)
        yield _prepare(home, server, base_url, items)
    finally:
        if provider is not None:
            provider.terminate()
            provider.wait()
        server.stop()
        shutil.rmtree(home)


def _prepare(home: Path, server: Server, base_url: str, items: int) -> Site:
    server.create_database("bench")
    with psycopg.connect(server.dsn("bench"), autocommit=True) as conn:
        make_documents(conn, items)
    return ready_site(home, server, "bench", base_url, JOB_YAML)


def ready_site(home: Path, server: Server, database: str, base_url: str, job_yaml: str) -> Site:
    """A site on a database that has its documents already: the ledger, the job folder, the view."""
    server.create_login(WRITER)
    dsn = server.dsn(database)
    init_db(dsn)
    folder = home / "jobs" / "bench"
    write_job(folder, job_yaml)
    with psycopg.connect(dsn) as conn:
        conn.execute(f"grant nightmill_writer to {WRITER}")
        views.apply(conn, job_folders.read(folder))
    pid = server.pid()
    assert pid is not None
    return Site(home, dsn, server.dsn(database, WRITER), base_url, pid)


def write_job(folder: Path, job_yaml: str) -> None:
    """A job folder that asks for a summary of each document."""
    folder.mkdir(parents=True)
    for name, content in (("job.yaml", job_yaml), ("prompt.md", PROMPT), ("output.py", OUTPUT)):
        (folder / name).write_text(content)


def make_documents(conn: psycopg.Connection[tuple[object, ...]], items: int) -> None:
    """The source table: ordinary words, a fixed pseudo-random choice."""
    conn.execute(
        "create table documents as select 'doc-' || lpad(n::text, 8, '0') as id, '1' as version, "
        "(select string_agg((%(words)s::text[])[1 + abs(hashint4(n * 191 + k)) %% %(count)s], ' ') "
        "from generate_series(1, 165) as k) as body from generate_series(1, %(items)s) as n",
        {"words": WORDS, "count": len(WORDS), "items": items},
    )
    conn.execute("create unique index on documents (id)")
    conn.execute("vacuum analyze documents")


def change_documents(site: Site, one_of: int) -> None:
    """Give every `one_of`th document a new version, as an edit would."""
    with psycopg.connect(site.admin_dsn, autocommit=True) as conn:
        conn.execute(
            "update documents set version = '2', body = body || ' changed' where right(id, 6)::int %% %s = 0",
            (one_of,),
        )
        conn.execute("vacuum analyze documents")


def start_provider(home: Path, batch_s: float = 0) -> tuple[subprocess.Popen[bytes], str]:
    """The local provider and its base URL. A batch takes `batch_s` seconds; 0: as fast as the machine allows."""
    port_file = home / "port"
    options = ["--port", "0", "--port-file", str(port_file), "--data-dir", str(home / "provider")]
    options += ["--batch-seconds", f"{batch_s:g}", "--count-tokens", "approx"]
    started = subprocess.Popen(
        [sys.executable, "-m", "dev.practice_provider", *options], stdout=subprocess.DEVNULL, env=dict(os.environ)
    )
    while not port_file.exists():
        time.sleep(0.05)
    return started, f"http://127.0.0.1:{port_file.read_text().strip()}/v1"

"""Everything that a chaos run outside pytest works on: a Postgres of its own, the local provider, a job folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
from support.pipeline import JOB_YAML, OUTPUT, PROMPT, Pipeline

from dev.practice_provider.server import start_in_thread
from dev.practice_provider.settings import Settings
from dev.stack.postgres import start_server
from nightmill.storage.migrate import init_db

DATABASE, WRITER = "chaos", "nightmill_chaos_writer"


@contextmanager
def site() -> Iterator[Pipeline]:
    """A job that is set up and has no documents yet. Everything is stopped and deleted afterwards."""
    with ExitStack() as stack:
        home = Path(tempfile.mkdtemp(prefix="nightmill-chaos-"))
        stack.callback(shutil.rmtree, home)
        server = start_server(home / "postgres", durable=False)
        stack.callback(server.stop)
        server.create_database(DATABASE)
        server.create_login(WRITER)
        init_db(server.dsn(DATABASE))
        with psycopg.connect(server.dsn(DATABASE)) as conn:
            conn.execute(f"grant nightmill_writer to {WRITER}")
        simulator = start_in_thread(Settings(data_dir=home / "provider", batch_s=0))
        stack.callback(simulator.stop)
        folder = home / "jobs" / "notes"
        folder.mkdir(parents=True)
        for name, content in (("job.yaml", JOB_YAML), ("prompt.md", PROMPT), ("output.py", OUTPUT)):
            (folder / name).write_text(content, "utf-8")
        yield Pipeline(server.dsn(DATABASE), server.dsn(DATABASE, WRITER), simulator, folder, home / "objects")

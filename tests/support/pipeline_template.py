"""What every test of a pipeline begins with, made once: the applied job `notes` and its twenty documents."""

from __future__ import annotations

import psycopg

from dev.stack.postgres import Server
from nightmill.jobs.contract import JobDefinition
from nightmill.storage import views
from support.pipeline import JOB_YAML, OUTPUT, PROMPT, insert_documents

WRITER = "nightmill_test_writer"
FILES = {"job.yaml": JOB_YAML, "prompt.md": PROMPT, "output.py": OUTPUT}
DOCUMENTS = [(f"doc-{n:02}", "1", "acme" if n < 10 else "umbrella", f"Text number {n}. " * n) for n in range(1, 21)]


def fill(server: Server, dsn: str) -> None:
    """Apply the job in a migrated ledger, put its documents beside it, and let the writer in."""
    server.create_login(WRITER)
    with psycopg.connect(dsn) as conn:
        conn.execute(f"grant nightmill_writer to {WRITER}")
        views.apply(conn, JobDefinition("notes", {name: content.encode() for name, content in FILES.items()}))
    insert_documents(dsn, DOCUMENTS)

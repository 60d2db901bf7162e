from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from support.ledger import Ledger, apply, definition

from dev.stack.postgres import Server


@pytest.fixture
def ledger(make_database: Callable[..., str], ledger_template: str, postgres_server: Server) -> Ledger:
    """A ledger with the applied job `notes` and the logins of a writer and a reader."""
    dsn = make_database(ledger_template)
    database = dsn.rsplit("/", 1)[1]
    with psycopg.connect(dsn) as conn:
        for role in ("writer", "reader"):
            postgres_server.create_login(f"nightmill_test_{role}")
            conn.execute(f"grant nightmill_{role} to nightmill_test_{role}")
    job = definition()
    apply(dsn, job)
    return Ledger(
        dsn,
        postgres_server.dsn(database, "nightmill_test_writer"),
        postgres_server.dsn(database, "nightmill_test_reader"),
        job,
    )

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.ledger import Ledger, definition

from dev.stack.postgres import Server


@pytest.fixture
def ledger(make_database: Callable[..., str], notes_template: str, postgres_server: Server) -> Ledger:
    """A ledger with the applied job `notes` and the logins of a writer and a reader."""
    dsn = make_database(notes_template)
    database = dsn.rsplit("/", 1)[1]
    return Ledger(
        dsn,
        postgres_server.dsn(database, "nightmill_test_writer"),
        postgres_server.dsn(database, "nightmill_test_reader"),
        definition(),
    )

"""A local stack whose ledger is of a development version does not start with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import development_ledger

from dev.stack.airflow_settings import LEDGER_DATABASE
from dev.stack.ledger import prepare_ledger
from dev.stack.postgres import Server
from nightmill.domain.errors import ConfigError


def test_the_stack_says_that_its_old_ledger_has_to_go(
    postgres_server: Server, ledger_template: str, tmp_path: Path
) -> None:
    postgres_server.create_database(LEDGER_DATABASE, template=ledger_template)
    try:
        development_ledger.pretend(postgres_server.dsn(LEDGER_DATABASE))
        with pytest.raises(ConfigError, match=r"made by a development version.*Remedy: Run `make clean`"):
            prepare_ledger(postgres_server, tmp_path)
    finally:
        postgres_server.drop_database(LEDGER_DATABASE)

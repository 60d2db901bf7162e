"""Fixtures for every test. Databases are real: one embedded server per session, one fresh database per use."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.figures import NOTED

from dev.stack.postgres import Server, start_server
from nightmill.storage.migrate import init_db

MakeDatabase = Callable[..., str]
TESTS = Path(__file__).parent
AIRFLOW = ("end_to_end/", "stack/test_wheel.py", "stack/test_stack.py")  # one at a time, for two cores
LONG = ("crash", "faults", "chaos", "cases")
OF_A_MAKE_CALL = ("ARGS", "JOB", "MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL")
for _name in OF_A_MAKE_CALL:  # `make test` drops them too; an editor or a script may call pytest below another make
    os.environ.pop(_name, None)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: needs minutes; not part of `make test`")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first, so that no process waits for another one's last file."""

    def turn(item: pytest.Item) -> int:
        path = item.path.relative_to(TESTS)
        return 0 if path.as_posix().startswith(AIRFLOW) else 1 if path.parts[0] in LONG else 2

    items.sort(key=turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of one file share its fixtures and run in one process; so do all those that start an Airflow."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return "Airflow" if file.removeprefix("tests/").startswith(AIRFLOW) else file

    return ByFile(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    NOTED.extend(node.workeroutput.get("noted", ()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["noted"] = NOTED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if NOTED:
        terminalreporter.section("figures")
        for line in NOTED:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """The session's server. Its administrator's DSN for a database: `postgres_server.dsn(name)`."""
    home = Path(tempfile.mkdtemp(prefix="nightmill-test-"))
    server = start_server(home, durable=False)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(home)


@pytest.fixture
def make_database(postgres_server: Server, request: pytest.FixtureRequest) -> Iterator[MakeDatabase]:
    """`make_database()` makes an empty database and returns its DSN; `make_database(template)` copies another one,
    to which nobody may be connected. Dropped after the test."""
    made: list[str] = []

    def make(template: str = "template1") -> str:
        name = f"test_{next(_numbers)}"
        postgres_server.create_database(name, template=template, copy_files=True)
        made.append(name)
        return postgres_server.dsn(name)

    yield make
    for name in made:
        postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def ledger_template(postgres_server: Server) -> str:
    """Name of a database with the migrated, empty ledger: `make_database(ledger_template)` copies it in some 50 ms."""
    name = "ledger_template"
    postgres_server.create_database(name)
    init_db(postgres_server.dsn(name))
    return name


@pytest.fixture(scope="session")
def pipeline_template(postgres_server: Server, ledger_template: str) -> str:
    """A ledger in which the job of `support.pipeline` is applied, with its documents, for a writer's login."""
    from support.pipeline_template import fill

    return _filled(postgres_server, ledger_template, "pipeline_template", fill)


@pytest.fixture(scope="session")
def notes_template(postgres_server: Server, ledger_template: str) -> str:
    """A ledger in which the job of `support.ledger` is applied, for the logins of a writer and a reader."""
    from support.ledger import fill

    return _filled(postgres_server, ledger_template, "notes_template", fill)


def _filled(server: Server, template: str, name: str, fill: Callable[[Server, str], None]) -> str:
    server.create_database(name, template=template)
    fill(server, server.dsn(name))
    return name


_numbers = count(1)

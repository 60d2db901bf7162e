"""Airflow's side of the console: who may look, and with which login. The only module here that imports Airflow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from airflow.api_fastapi.core_api.security import DagAccessEntity, requires_access_dag
from fastapi import FastAPI

from nightmill.console.app import create_app
from nightmill.domain.errors import ConfigError
from nightmill.orchestration.connections import lookup
from nightmill.orchestration.deployment import ThisAirflow
from nightmill.services.connections import CONSOLE, LEDGER, payload_root
from nightmill.storage import deployments, session
from nightmill.storage.session import Connection, IsolationLevel

STATEMENT_TIMEOUT = "10s"


def build() -> FastAPI:
    """The console behind Airflow's own login: who may see a DAG's task instances may see its batches."""
    return create_app(requires_access_dag("GET", DagAccessEntity.TASK_INSTANCE), open_ledger, payload_root(os.environ))


@contextmanager
def open_ledger() -> Iterator[Connection]:
    """One page's look at the ledger: a single snapshot, read only whatever the login may do."""
    with session.connect(_dsn(), application="nightmill console") as conn:
        conn.autocommit = True
        deployments.refuse_another(conn, ThisAirflow().deployment_id)  # who may see a DAG here may not see that one
        conn.autocommit = False
        conn.read_only = True
        conn.isolation_level = IsolationLevel.REPEATABLE_READ
        conn.execute(f"set local statement_timeout = '{STATEMENT_TIMEOUT}'")
        yield conn


def _dsn() -> str:
    """The console's own login; where nobody made one, the tasks' login."""
    try:
        return lookup(CONSOLE).database_url()
    except ConfigError:
        return lookup(LEDGER).database_url()

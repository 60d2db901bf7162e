"""Airflow connections as the environment of stages. Secrets stay in memory: not in XCom, logs or trigger arguments."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from nightmill.domain.errors import ConfigError
from nightmill.orchestration.deployment import ThisAirflow
from nightmill.services.connections import AirflowConnection, environment_with
from nightmill.services.environment import Environment


def environment() -> Environment:
    """The environment of a task. The ledger must be this Airflow's own."""
    return replace(environment_with(lookup, os.environ), admit=ThisAirflow().admit)


def lookup(conn_id: str) -> AirflowConnection:
    """A connection from Airflow's environment, secrets backend or database. Raises ConfigError when undefined."""
    try:
        return _fields(Connection.get(conn_id))
    except AirflowNotFoundException as fault:
        raise _undefined(conn_id) from fault


async def lookup_async(conn_id: str) -> AirflowConnection:
    """The same inside the triggerer, whose event loop must not wait."""
    try:
        return _fields(await Connection.async_get(conn_id))
    except AirflowNotFoundException as fault:
        raise _undefined(conn_id) from fault


def _fields(connection: Any) -> AirflowConnection:
    return AirflowConnection(
        conn_id=connection.conn_id,
        host=connection.host or "",
        port=connection.port,
        schema=connection.schema or "",
        login=connection.login or "",
        password=connection.password or "",
        extra=connection.extra_dejson or {},
    )


def _undefined(conn_id: str) -> ConfigError:
    return ConfigError(
        f"There is no Airflow connection {conn_id!r}.",
        f"Define it in the UI under Admin > Connections, or as AIRFLOW_CONN_{conn_id.upper()}.",
    )

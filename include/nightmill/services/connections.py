"""Connections in the shape that Airflow defines them, turned into what stages need.

Inside Airflow they come from its secrets backends; for the command line from AIRFLOW_CONN_* variables (JSON or URI).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from psycopg.pq import Conninfo

from nightmill.domain.errors import ConfigError, MissingExtra
from nightmill.providers.connection import LEAST_LINE_BYTES, SCOPES, AnswerLimits, ProviderConnection
from nightmill.services import aws_file_system
from nightmill.services.environment import Environment
from nightmill.storage import deployments
from nightmill.storage.payloads import PayloadStore
from nightmill.storage.session import Connection

LEDGER = "nightmill_db"
OWNER = "nightmill_owner"
CONSOLE = "nightmill_console"
DEPLOYMENT = f"AIRFLOW_VAR_{deployments.VARIABLE.upper()}"
OBJECT_STORE = "NIGHTMILL_OBJECT_STORE"
OBJECT_STORE_CONN_ID = "NIGHTMILL_OBJECT_STORE_CONN_ID"
_LIMITS = {one.name for one in fields(AnswerLimits)}
_HEADER = re.compile(r"[\x21-\x7e]*")  # what a header can hold
_PARAMETERS = {option.keyword.decode() for option in Conninfo.get_defaults()} - {"host", "port", "user", "password"}
_PLAIN_HOST = re.compile(r"[A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class AirflowConnection:
    """The fields of an Airflow connection."""

    conn_id: str
    host: str = ""
    port: int | None = None
    schema: str = ""
    login: str = ""
    password: str = field(default="", repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def database_url(self) -> str:
        """The DSN of a Postgres connection; extra keys that libpq knows become parameters (sslmode, ...). The host may
        be an IPv6 address, the directory of a Unix socket, or several hosts with commas between them."""
        plain = {key: _parameter(value) for key, value in self.extra.items() if key in _PARAMETERS}
        host, port = self.host or str(self.extra.get("host") or ""), self.port or self.extra.get("port") or 5432
        place = f"{host}:{port}"
        if _is_ipv6(host):
            place = f"[{host.strip('[]')}]:{port}"
        elif not _PLAIN_HOST.fullmatch(host):
            place, plain = "", {"host": host, "port": str(port)} | plain
        given = {key: value for key, value in plain.items() if value}
        query = f"?{urlencode(given, quote_via=quote)}" if given else ""  # libpq reads no + as a space
        credentials = f"{quote(self.login, safe='')}:{quote(self.password, safe='')}"
        return f"postgresql://{credentials}@{place}/{quote(self.schema, safe='')}{query}"

    def provider_account(self, timeout_s: float) -> ProviderConnection:
        """host = base URL, password = key, extra = scopes (organization, project, workspace, ...), allow_http and the
        limits of answers.

        Raises ConfigError for what cannot be any of them.
        """
        return ProviderConnection(
            conn_id=self.conn_id,
            base_url=self.host,
            api_key=self.password,
            scopes={name: value for name in SCOPES if (value := self._name(name))},
            timeout_s=timeout_s,
            allow_http=self._flag("allow_http"),
            answers=AnswerLimits(**{key: self._bytes(key) for key in _LIMITS & self.extra.keys()}),
        )

    def _name(self, key: str) -> str | None:
        value = self.extra.get(key)
        if value is None or (isinstance(value, str) and _HEADER.fullmatch(value)):
            return value or None
        raise self._refused(key, "is not a plain word", f"Write {key} as the provider shows it.")

    def _flag(self, key: str) -> bool:
        """A URI has text only."""
        value = self.extra.get(key)
        if value in (None, False, "false", "False", "no", "0", ""):
            return False
        if value in (True, "true", "True", "yes", "1"):
            return True
        raise self._refused(key, "is neither true nor false", f'Write {{"{key}": true}}, or leave it out.')

    def _bytes(self, key: str) -> int:
        value = self.extra[key]
        digits = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
        if digits.isascii() and digits.isdigit() and len(digits) < 16 and int(digits) >= LEAST_LINE_BYTES:
            return int(digits)
        raise self._refused(key, "is not a number of bytes", f"Write a whole number of {LEAST_LINE_BYTES:,} or more.")

    def _refused(self, key: str, why: str, remedy: str) -> ConfigError:
        return ConfigError(f"{key} in the extra of connection {self.conn_id!r} {why}.", remedy)

    def file_system_options(self) -> dict[str, Any]:
        """For fsspec's S3, as Airflow's amazon provider reads a connection of type aws."""
        return aws_file_system.options_of(self.conn_id, self.login, self.password, self.extra)

    def key_pair(self) -> dict[str, Any]:
        """For another of fsspec's file systems; nothing where the connection has no login."""
        return {name: value for name, value in (("key", self.login), ("secret", self.password)) if value}


Lookup = Callable[[str], AirflowConnection]


@dataclass(frozen=True, slots=True)
class LookedUp:
    """The connections of an environment, by any look-up."""

    lookup: Lookup

    def database(self, conn_id: str) -> str:
        """A Postgres DSN."""
        return self.lookup(conn_id).database_url()

    def provider(self, conn_id: str, timeout_s: float) -> ProviderConnection:
        """Base URL and key of a provider's account."""
        return self.lookup(conn_id).provider_account(timeout_s)


def environment_with(lookup: Lookup, variables: Mapping[str, str]) -> Environment:
    """The environment of stages. Raises ConfigError for a connection that is not defined."""
    return Environment(
        ledger_dsn=lookup(LEDGER).database_url(),
        payloads=payload_store(lookup, variables),
        connections=LookedUp(lookup),
    )


def payload_store(lookup: Lookup, variables: Mapping[str, str]) -> PayloadStore:
    """NIGHTMILL_OBJECT_STORE says where payloads go (any fsspec URL; without it a folder below NIGHTMILL_HOME),
    NIGHTMILL_OBJECT_STORE_CONN_ID whose credentials it takes. They are asked for at the first use."""
    conn_id, root = variables.get(OBJECT_STORE_CONN_ID), payload_root(variables)
    connection = lookup(conn_id) if conn_id else AirflowConnection("")
    of_s3 = root.partition(":")[0] in aws_file_system.SCHEMES
    if of_s3 and find_spec("s3fs") is None:
        raise MissingExtra("The library for payloads in S3", "s3")
    try:
        return PayloadStore(root, connection.file_system_options if conn_id and of_s3 else connection.key_pair())
    except (ValueError, ImportError) as fault:
        raise ConfigError(
            f"{OBJECT_STORE} names a kind of store that cannot be used here ({type(fault).__name__}): "
            f"{root.partition(':')[0]}.",
            "Use file:// or s3://, or install the fsspec driver of that kind.",
        ) from None


def payload_root(variables: Mapping[str, str]) -> str:
    """The URL below which payloads and evidence lie."""
    home = variables.get("NIGHTMILL_HOME", str(Path.home() / ".nightmill"))
    return variables.get(OBJECT_STORE, f"file://{home}/objects")


def environment_of(variables: Mapping[str, str]) -> Environment:
    """The environment whose connections stand in AIRFLOW_CONN_* variables. Where the Airflow's id stands there too, the
    ledger must be that Airflow's."""
    made = environment_with(lambda conn_id: from_variables(conn_id, variables), variables)
    mine = variables.get(DEPLOYMENT)
    return replace(made, admit=lambda conn: _admit(conn, mine)) if mine else made


def _admit(conn: Connection, mine: str) -> None:
    conn.autocommit = True
    deployments.refuse_another(conn, mine)
    conn.autocommit = False


def from_variables(conn_id: str, variables: Mapping[str, str] = os.environ) -> AirflowConnection:
    """The connection of AIRFLOW_CONN_<ID>, as JSON or URI. Raises ConfigError when it is not defined."""
    name = f"AIRFLOW_CONN_{conn_id.upper()}"
    value = variables.get(name)
    if not value:
        raise ConfigError(f"The connection {conn_id!r} is not defined.", f"Set {name} to the connection's URI or JSON.")
    if value.lstrip().startswith("{"):
        return _from_json(conn_id, name, value)
    try:
        url = urlsplit(value)
        query = dict(parse_qsl(url.query))
        return AirflowConnection(
            conn_id=conn_id,
            host=_host(url),
            port=url.port,
            schema=unquote(url.path.lstrip("/")),
            login=unquote(url.username or ""),
            password=unquote(url.password or ""),
            extra=_mapping(query.pop("__extra__", "{}")) | query,
        )
    except ValueError:  # it can quote a part of the password
        raise ConfigError(
            f"{name} is not a connection's URI.",
            "Write it as type://login:password@host:port/database, with / : @ and % in the password percent-encoded.",
        ) from None


def _from_json(conn_id: str, name: str, value: str) -> AirflowConnection:
    try:
        fields = _mapping(value)
        return AirflowConnection(
            conn_id=conn_id,
            host=fields.get("host") or "",
            port=int(fields["port"]) if fields.get("port") else None,
            schema=fields.get("schema") or "",
            login=fields.get("login") or "",
            password=fields.get("password") or "",
            extra=_mapping(fields.get("extra") or {}),
        )
    except (ValueError, TypeError):
        raise ConfigError(
            f"{name} is not a connection in JSON.", "Write it as Airflow's documentation shows."
        ) from None


def _host(url: SplitResult) -> str:
    """The host as Airflow reads it: a path keeps its capitals, and an IPv6 address has no brackets."""
    host = unquote(url.hostname or "")
    return unquote(url.netloc.rpartition("@")[2].partition(":")[0]) if "/" in host else host


def _is_ipv6(host: str) -> bool:
    try:
        return ip_address(host.strip("[]").partition("%")[0]).version == 6 and "%" not in host
    except ValueError:
        return False


def _parameter(value: Any) -> str:
    """An extra as libpq takes it; empty where it says nothing."""
    if isinstance(value, bool):
        return str(int(value))
    return str(value).strip() if isinstance(value, str | int) else ""


def _mapping(value: Any) -> dict[str, Any]:
    """A JSON object, or the text of one. Raises ValueError for all else."""
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found

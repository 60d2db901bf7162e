"""A server that vanishes is noticed within a minute on every connection, unless the connection's extras say otherwise.
What counts is what the kernel and the server report of a real connection."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from support.ledger import Ledger

from nightmill.domain.errors import Transient
from nightmill.gates import checks
from nightmill.jobs.settings.gate_settings import Gold
from nightmill.jobs.settings.job import Source
from nightmill.operations.doctor import open_ledger
from nightmill.orchestration.poller import ShardPoller
from nightmill.services.connections import AirflowConnection
from nightmill.storage import gold
from nightmill.storage.session import connect
from nightmill.storage.sources import SourceSnapshot

WITHIN_A_MINUTE = {"keepalive": 1, "idle": 30, "interval": 10, "count": 3, "user_timeout": 60_000}


def of_kernel(fileno: int) -> dict[str, int]:
    """What the kernel does about a silent peer of a connection."""
    with socket.socket(fileno=os.dup(fileno)) as ours:
        return {
            "keepalive": ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
            "idle": ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
            "interval": ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
            "count": ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
            "user_timeout": ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
        }


def of_server(conn: Any) -> list[str]:
    """What the server does about a silent client, and how long it waits for a lock."""
    names = ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout")
    return [conn.execute(f"show {name}").fetchone()[0] for name in (*names, "lock_timeout")]


def source(query: str) -> Source:
    return Source.model_validate({"conn_id": "source", "query": query, "columns": {"id": "id", "text": "body"}})


def with_extras(dsn: str, **extra: Any) -> str:
    """The address that an Airflow connection with these extras makes."""
    parts = urlsplit(dsn)
    assert parts.hostname and parts.port and parts.username and parts.password
    login = {"login": parts.username, "password": parts.password}
    return AirflowConnection(
        "nightmill_db", parts.hostname, parts.port, parts.path.lstrip("/"), **login, extra=extra
    ).database_url()


@pytest.mark.parametrize("opener", [connect, open_ledger], ids=["tasks, console, commands", "doctor"])
def test_a_connection_to_the_ledger_notices_a_vanished_server_and_the_server_a_vanished_client(
    ledger: Ledger, opener: Any
) -> None:
    with opener(ledger.writer_dsn) as conn:
        assert of_kernel(conn.fileno()) == WITHIN_A_MINUTE
        assert of_server(conn) == ["30", "10", "3", "60000", "1min"]
        assert conn.info.get_parameters()["connect_timeout"] == "10"


def test_a_connection_to_a_source_does(ledger: Ledger) -> None:
    with SourceSnapshot(ledger.admin_dsn, source("select 'a' as id, 'b' as body"), ("body",)) as snapshot:
        assert of_kernel(snapshot._conn.fileno()) == WITHIN_A_MINUTE
        assert of_server(snapshot._conn)[:4] == ["30", "10", "3", "60000"]


def test_a_connection_for_known_answers_does(ledger: Ledger) -> None:
    query = "select 'a' as source_id, current_setting('tcp_keepalives_idle') as title"
    with ledger.writer() as conn:
        assert (
            gold.load(conn, ledger.admin_dsn, "source", Gold(query=query, fields=("title",)), statement_timeout_s=60)
            == 1
        )
        assert conn.execute("select answers::text from pg_temp.gold").fetchone() == ('{"title": "30"}',)


def test_the_connection_of_the_triggerers_poller_does(ledger: Ledger) -> None:
    async def look() -> dict[str, int]:
        async def opener() -> tuple[str, Any]:
            return ledger.writer_dsn, object()

        poller = ShardPoller(opener)
        await poller._read([1])
        assert poller._conn is not None
        seen = of_kernel(poller._conn.fileno())
        await poller._conn.close()
        return seen

    assert asyncio.run(look()) == WITHIN_A_MINUTE


def test_the_connections_of_great_expectations_do_and_see_no_neighbours_names(ledger: Ledger) -> None:
    from sqlalchemy import create_engine

    engine = create_engine("postgresql+psycopg://", **checks._reading_only(ledger.writer_dsn))
    with engine.connect() as conn:
        raw = conn.connection.dbapi_connection
        assert isinstance(raw, psycopg.Connection)
        assert of_kernel(raw.fileno()) == WITHIN_A_MINUTE
        assert raw.execute("show search_path").fetchone() == ("pg_catalog,pg_temp",)
        assert raw.execute("show statement_timeout").fetchone() == ("1h",)
    engine.dispose()


def test_what_the_connections_extras_say_wins_but_for_what_the_ledger_needs(ledger: Ledger) -> None:
    extras = {
        "keepalives_idle": 7,
        "keepalives_count": "2",
        "tcp_user_timeout": 5000,
        "connect_timeout": 3,
        "options": "-c lock_timeout=5s -c statement_timeout=90s -c tcp_keepalives_idle=9 -c search_path=public",
    }
    with connect(with_extras(ledger.writer_dsn, **extras)) as conn:
        assert of_kernel(conn.fileno()) == WITHIN_A_MINUTE | {"idle": 7, "count": 2, "user_timeout": 5000}
        assert of_server(conn) == ["9", "10", "3", "60000", "5s"]
        assert conn.execute("show statement_timeout").fetchone() == ("90s",)
        assert conn.execute("show search_path").fetchone() == ("pg_catalog,pg_temp",)
        assert conn.info.get_parameters()["connect_timeout"] == "3"
    off = connect(with_extras(ledger.writer_dsn, keepalives=0, tcp_user_timeout=0))
    assert of_kernel(off.fileno())["keepalive"] == 0
    off.close()


@contextmanager
def going_silent(port: int, *, at_once: bool = False) -> Iterator[tuple[int, threading.Event]]:
    """The port of a proxy before a server, and what makes it read and answer nothing any more."""
    silent, over = threading.Event(), threading.Event()
    opened: list[socket.socket] = []

    def pump(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):  # the test is over
            while content := one.recv(4096):
                if silent.is_set():
                    over.wait(30)
                    return
                other.sendall(content)

    def serve() -> None:
        client, _ = listening.accept()
        opened.append(client)
        if at_once:
            over.wait(30)
            return
        server = socket.create_connection(("127.0.0.1", port))
        opened.append(server)
        for ends in ((client, server), (server, client)):
            threading.Thread(target=pump, args=ends, daemon=True).start()

    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield listening.getsockname()[1], silent
        finally:
            over.set()
            for one in opened:
                one.close()


def test_a_server_that_takes_nothing_any_more_ends_a_statement_in_the_time_that_the_extras_give(ledger: Ledger) -> None:
    port = urlsplit(ledger.writer_dsn).port
    assert port
    with going_silent(port) as (proxy, silent):
        dsn = with_extras(ledger.writer_dsn.replace(f":{port}/", f":{proxy}/"), tcp_user_timeout=300)
        conn = connect(dsn)
        conn.execute("select 1")
        silent.set()
        began = time.monotonic()
        with pytest.raises(psycopg.OperationalError):
            conn.execute("select length(%s)", ("x" * 10_000_000,))
        assert time.monotonic() - began < 60
        assert conn.closed


def test_a_server_that_accepts_and_never_answers_is_given_up_as_one_that_cannot_be_reached(ledger: Ledger) -> None:
    port = urlsplit(ledger.writer_dsn).port
    assert port
    with going_silent(port, at_once=True) as (proxy, _):
        dsn = with_extras(ledger.writer_dsn.replace(f":{port}/", f":{proxy}/"), connect_timeout=2)
        began = time.monotonic()
        with pytest.raises(Transient, match="cannot be reached"):
            connect(dsn)
        assert time.monotonic() - began < 60

"""Ways to a Postgres server that are not a host and a port: a pooler that takes no startup options, a Unix socket, an
IPv6 address. A proxy before a real server plays them."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from support.ledger import Ledger

from nightmill.domain.errors import Transient
from nightmill.gates import checks
from nightmill.jobs.settings.job import Source
from nightmill.services.connections import AirflowConnection
from nightmill.storage import session as ledgers
from nightmill.storage.sources import SourceSnapshot
from nightmill.storage.startup_options import settings_of

PGBOUNCER = "unsupported startup parameter: options"
RDS_PROXY = "Feature not supported: RDS Proxy currently doesn't support command-line options."
NO_TLS = {80877103, 80877104}


@contextmanager
def proxy(target: int, *, at: str | tuple[str, int] = ("127.0.0.1", 0), refuses: str | None = None) -> Iterator[int]:
    """Stands before the server at a port; with `refuses`, it takes no startup options. Yields its own port."""
    opened: list[socket.socket] = []
    family = socket.AF_UNIX if isinstance(at, str) else socket.AF_INET6 if ":" in at[0] else socket.AF_INET

    def pump(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while content := one.recv(65536):
                other.sendall(content)
            other.shutdown(socket.SHUT_WR)

    def serve(client: socket.socket) -> None:
        with suppress(OSError, struct.error):  # the test is over, or the client went away
            introduce(client)

    def introduce(client: socket.socket) -> None:
        while True:
            size, code = struct.unpack("!ii", client.recv(8, socket.MSG_WAITALL))
            if code not in NO_TLS:
                break
            client.sendall(b"N")
        words = client.recv(size - 8, socket.MSG_WAITALL)
        if refuses and b"options\0" in words:
            said = b"SFATAL\0C08P01\0M" + refuses.encode() + b"\0\0"
            client.sendall(b"E" + struct.pack("!i", len(said) + 4) + said)
            client.shutdown(socket.SHUT_RDWR)
            return
        server = socket.create_connection(("127.0.0.1", target))
        opened.append(server)
        server.sendall(struct.pack("!ii", size, code) + words)
        for ends in ((client, server), (server, client)):
            threading.Thread(target=pump, args=ends, daemon=True).start()

    def accept() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            opened.append(client)
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.socket(family) as listening:
        listening.bind(at)
        listening.listen()
        threading.Thread(target=accept, daemon=True).start()
        yield 0 if isinstance(at, str) else listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        for one in opened:
            one.close()


def address(dsn: str, host: str, port: int, **extra: str) -> str:
    """The address that an Airflow connection makes for the same login at another place."""
    parts = urlsplit(dsn)
    assert parts.username and parts.password
    login = {"login": parts.username, "password": parts.password}
    return AirflowConnection("x", host, port, parts.path.lstrip("/"), **login, extra=extra).database_url()


@pytest.fixture(params=[PGBOUNCER, RDS_PROXY], ids=["PgBouncer", "RDS Proxy"])
def pooler(ledger: Ledger, request: pytest.FixtureRequest) -> Iterator[int]:
    with proxy(urlsplit(ledger.writer_dsn).port or 0, refuses=request.param) as port:
        yield port


def settings(conn: psycopg.Connection[tuple[str]], *names: str) -> list[str]:
    return [conn.execute(f"show {name}").fetchone()[0] for name in names]  # type: ignore[index]


def test_a_pooler_that_refuses_startup_options_gets_the_ledgers_settings_by_sql(ledger: Ledger, pooler: int) -> None:
    own = {"options": "-c statement_timeout=90s --lock-timeout=5s -c search_path=public"}
    with ledgers.connect(address(ledger.writer_dsn, "127.0.0.1", pooler, **own)) as conn:
        names = ("statement_timeout", "lock_timeout", "search_path", "timezone", "application_name")
        expected = ["90s", "5s", "pg_catalog,pg_temp", "UTC", "nightmill"]
        assert settings(conn, *names) == expected
        conn.rollback()
        assert settings(conn, *names) == expected


def test_the_triggerer_and_the_checks_pass_a_pooler_too(ledger: Ledger, pooler: int) -> None:
    from sqlalchemy import create_engine, text

    dsn = address(ledger.writer_dsn, "127.0.0.1", pooler)

    async def shown() -> object:
        async with await ledgers.connect_async(dsn, application="nightmill triggerer") as conn:
            return await (await conn.execute("show search_path")).fetchone()

    assert asyncio.run(shown()) == ("pg_catalog,pg_temp",)
    engine = create_engine("postgresql+psycopg://", **checks._reading_only(dsn))
    with engine.connect() as conn:
        assert conn.execute(text("show search_path")).scalar() == "pg_catalog,pg_temp"
    engine.dispose()


def test_a_source_behind_a_pooler_is_read_with_its_settings(ledger: Ledger, pooler: int) -> None:
    query = "select timestamptz '2026-01-02 03:04+01' as id, current_setting('search_path') as body"
    read = Source.model_validate({"conn_id": "s", "query": query, "columns": {"id": "id", "text": "body"}})
    dsn = address(ledger.admin_dsn, "127.0.0.1", pooler, options="-c search_path=results -c timezone=Asia/Tokyo")
    with SourceSnapshot(dsn, read, ("body",)) as snapshot:
        (row,) = snapshot.rows({}, None)
    assert (row.source_id, row.values) == ("2026-01-02 02:04:00+00", {"body": "results"})


def test_what_no_settings_can_be_made_of_is_said_as_the_pooler_says_it(ledger: Ledger, pooler: int) -> None:
    with pytest.raises(Transient, match=r"cannot be reached: .*(unsupported startup parameter|command-line options)"):
        ledgers.connect(address(ledger.writer_dsn, "127.0.0.1", pooler, options="-B 500"))


@pytest.mark.parametrize(
    ("options", "read"),
    [
        (r"-c a=b -cx.y=1\ 2 --search-path=p,q", [("a", "b"), ("x.y", "1 2"), ("search_path", "p,q")]),
        ("-c a=1  -c a=2", [("a", "2")]),
        ("", []),
        ("-c", None),
        ("-c a", None),
        ("a=b", None),
        ("-B 5", None),
    ],
)
def test_options_are_read_as_the_server_reads_them(options: str, read: object) -> None:
    assert settings_of(options) == read


def test_unix_sockets_and_ipv6_addresses_are_connected_to(ledger: Ledger, tmp_path: Path) -> None:
    target = urlsplit(ledger.writer_dsn).port or 0
    by_socket = address(ledger.writer_dsn, str(tmp_path), 5432)
    with proxy(target, at=str(tmp_path / ".s.PGSQL.5432")), ledgers.connect(by_socket) as conn:
        assert conn.info.host == str(tmp_path)
        assert conn.execute("select 1").fetchone() == (1,)
    with proxy(target, at=("::1", 0)) as port, ledgers.connect(address(ledger.writer_dsn, "::1", port)) as conn:
        assert conn.info.hostaddr == "::1"

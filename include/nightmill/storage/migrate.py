"""Creating and migrating the ledger: roles, schemas, numbered migrations, prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources

import yaml
from psycopg import errors
from psycopg import sql as composed

from nightmill.domain.errors import ConfigError
from nightmill.storage import sql
from nightmill.storage.session import Connection, connect

ROLES = (
    "nightmill_owner", "nightmill_view_owner", "nightmill_writer", "nightmill_reader", "nightmill_console",
    "nightmill_reviewer",
)  # fmt: skip


def migrations() -> list[tuple[int, str, str]]:
    """All migrations in order as (number, name, SQL)."""
    folder = resources.files("nightmill.storage").joinpath("migrations")
    found = []
    for entry in folder.iterdir():
        if entry.name.endswith(".sql"):
            number, _, name = entry.name.removesuffix(".sql").partition("_")
            found.append((int(number), name, entry.read_text("utf-8")))
    return sorted(found)


def init_db(dsn: str) -> list[str]:
    """Bring a database to the newest ledger version and return the names of the migrations that ran.

    The login needs CREATEROLE and CREATE on the database, else ConfigError; so is a ledger that `refuse_unknown`
    refuses. Safe to repeat and to run twice at a time.
    """
    with _privileged(), connect(dsn, application="nightmill init-db") as conn:
        conn.execute("select pg_advisory_xact_lock(7106, 0)")
        _create_roles(conn)
        _create_schemas(conn)
        conn.execute("set local role nightmill_owner")
        conn.execute(sql.text("ledger/migration_table"))
        done = recorded(conn)
        refuse_unknown(done)
        ran = []
        for number, name, content in migrations():
            if number not in done:
                conn.execute(content)
                conn.execute("insert into nightmill.migration (number, name) values (%s, %s)", (number, name))
                ran.append(f"{number:04d}_{name}")
        _load_prices(conn)
        return ran


@contextmanager
def _privileged() -> Iterator[None]:
    try:
        yield
    except errors.InsufficientPrivilege as fault:
        raise ConfigError(
            f"The login may not set up the ledger: {fault.diag.message_primary}.",
            "Run init-db with a login that has CREATEROLE and CREATE on the database: --dsn postgresql://...",
        ) from fault


def recorded(conn: Connection) -> dict[int, str]:
    """The migrations that ran in this ledger, by number. Raises what Postgres raises where there is none."""
    return dict(conn.execute("select number, name from nightmill.migration").fetchall())


def refuse_unknown(done: Mapping[int, str]) -> None:
    """Raise ConfigError for a ledger whose migrations are not the ones of this version, or a start of them."""
    known = {number: name for number, name, _ in migrations()}
    if any(known[number] != name for number, name in done.items() if number in known):
        raise ConfigError(
            "This ledger was made by a development version of nightmill, which this version cannot upgrade.",
            "Run `make clean` (local stack) or create a new database.",
        )
    unknown = done.keys() - known.keys()
    if unknown:
        raise ConfigError(
            f"The ledger was migrated by a newer nightmill (migration {max(unknown)} is unknown here).",
            "Install that version or a later one.",
        )


def _create_roles(conn: Connection) -> None:
    """Roles belong to the server, not the database: another database's init-db may create them at the same time."""
    for role in ROLES:
        conn.execute(
            composed.SQL(
                "do $$ begin create role {} nologin; exception when duplicate_object or unique_violation then null; "
                "end $$"
            ).format(composed.Identifier(role))
        )
    conn.execute("grant nightmill_owner to current_user")
    conn.execute("grant nightmill_view_owner to nightmill_owner")


def _create_schemas(conn: Connection) -> None:
    for schema in ("nightmill", "results"):
        conn.execute(
            composed.SQL("create schema if not exists {} authorization nightmill_owner").format(
                composed.Identifier(schema)
            )
        )
    found = conn.execute(sql.text("ledger/schema_strangers")).fetchone()
    if found is not None:
        schema, role, owns = found
        act = "alter schema {0} owner to nightmill_owner" if owns else "revoke create on schema {0} from {1}"
        quoted = "public" if role == "public" else f'"{role}"'
        raise ConfigError(
            f"The role {role} {'owns' if owns else 'may create what it likes in'} the schema {schema}, and so could "
            "act with the rights of nightmill_owner.",
            f"As an administrator: {act.format(schema, quoted)}; then look at what is in the schema, and run init-db "
            "again.",
        )


def _load_prices(conn: Connection) -> None:
    content = resources.files("nightmill.storage").joinpath("prices.yaml").read_text("utf-8")
    for row in yaml.safe_load(content)["prices"]:
        conn.execute(sql.text("usage/upsert_price"), {"cache_write": None, **row})

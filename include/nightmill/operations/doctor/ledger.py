"""Checks of the ledger's database, and of the sweeps that write into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from nightmill.domain.errors import ConfigError
from nightmill.domain.wording import pluralised
from nightmill.operations.doctor.findings import Doubt, Finding, attempt
from nightmill.storage import deployments, maintenance, server_facts
from nightmill.storage.session import Connection, connect

OLDEST_POSTGRES = 16
CLOCK_LIMIT_S = 5.0
SWEEP_LIMIT = timedelta(hours=1)  # nightmill_maintenance runs every 15 minutes
DECISIVE = frozenset({"ledger: migrations", "ledger: login"})  # without these nothing else can be read there


def open_ledger(dsn: str) -> Connection:
    """A connection for all checks. Raises what `connect` raises."""
    conn = connect(dsn, application="nightmill doctor")
    conn.autocommit = True
    return conn


def examine_ledger(conn: Connection, now: Callable[[], datetime]) -> Iterator[Finding]:
    """Version, migrations, login and clock of the ledger. The connection must be in autocommit."""
    yield attempt("ledger: Postgres version", lambda: _version(conn))
    yield attempt("ledger: migrations", lambda: _migrations(conn))
    yield attempt("ledger: login", lambda: _login(conn))
    yield attempt("ledger: clock", lambda: _clock(conn, now))


def _version(conn: Connection) -> str:
    major = server_facts.server_version(conn)
    if major < OLDEST_POSTGRES:
        raise ConfigError(
            f"The ledger runs on Postgres {major}; {OLDEST_POSTGRES} or later is needed.", "Upgrade the server."
        )
    return f"Postgres {major}"


def _migrations(conn: Connection) -> str:
    missing = server_facts.missing_migrations(conn)
    if missing is None:
        raise ConfigError(
            "The database has no ledger, or the login may not read it.",
            "Run `python -m nightmill init-db`; then grant nightmill_writer to the login of nightmill_db.",
        )
    if missing:
        raise ConfigError(f"The ledger lacks {', '.join(missing)}.", "Run `python -m nightmill init-db`, then `apply`.")
    return "current"


def _login(conn: Connection) -> str | Doubt:
    login = server_facts.login(conn)
    if not login.writer:
        raise ConfigError(
            f"The login {login.login} of nightmill_db is no member of nightmill_writer.",
            f'As an administrator: grant nightmill_writer to "{login.login}".',
        )
    if login.superuser or login.owner:
        what = "is a superuser" if login.superuser else "is a member of nightmill_owner"
        return Doubt(
            f"the login {login.login} {what}: the database cannot refuse it what a run must not do",
            "Give nightmill_db a login that is a member of nightmill_writer only.",
        )
    return f"{login.login} is a member of nightmill_writer"


def _clock(conn: Connection, now: Callable[[], datetime]) -> str:
    before = now()
    server = server_facts.clock(conn)
    after = now()
    apart = (server - (before + (after - before) / 2)).total_seconds()
    if abs(apart) > CLOCK_LIMIT_S:
        raise ConfigError(
            f"The ledger's clock and this machine's are {abs(apart):.0f} s apart.", "Set both by NTP; waits rely on it."
        )
    return f"{abs(apart):.1f} s apart"


def examine_deployment(conn: Connection, mine: str | None) -> Finding:
    """Which Airflow the ledger belongs to. `mine` is the one that the command speaks for: empty where it has no id,
    None where nobody said."""

    def look() -> str | Doubt:
        found = deployments.pinned(conn)
        if found is None:
            return "belongs to no Airflow yet: the first task that uses it takes it"
        if mine == "":
            refusal = deployments.another(found, mine)
            seen = (
                f"this Airflow has no variable {deployments.VARIABLE}, and unless a secrets backend or the environment "
            )
            return Doubt(f"{seen}of its workers has it, its tasks are refused: {refusal.cause}", refusal.remedy)
        if mine is not None and mine != found.deployment_id:
            raise deployments.another(found, mine)
        which = "this Airflow" if mine else "the Airflow deployment"
        return f"belongs to {which} {found.deployment_id} since {found.pinned_at:%Y-%m-%d}"

    return attempt("ledger: deployment", look)


def examine_maintenance(conn: Connection, now: Callable[[], datetime]) -> Finding:
    """Whether the sweeps run, and whether they found something for a person."""

    def look() -> str | Doubt:
        seen = maintenance.standing(conn)
        since = seen.oldest_sweep or seen.oldest_batch
        if since is not None and now() - since > SWEEP_LIMIT:
            return Doubt(
                f"no sweep came to its end since {since:%Y-%m-%d %H:%M} UTC",
                "Unpause nightmill_maintenance: without it nothing of a cancelled run is stopped at the provider.",
            )
        if seen.alerts:
            remedy = "Read them: select * from nightmill.maintenance_action where alert order by action_id desc."
            return Doubt(f"{pluralised(seen.alerts, 'alert')} within a day", remedy)
        return "runs, no alerts" if seen.oldest_sweep else "nothing to do so far"

    return attempt("maintenance", look)

"""doctor: looks at everything a run needs and says the remedy for what is wrong. Sends no paid call, changes nothing
but one small object that it writes to the object store and deletes again. Not a task: a person's command.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path

from nightmill.domain.contract import JobDefinition
from nightmill.domain.dead_letters import breaches
from nightmill.domain.errors import ConfigError, NightmillError, ProviderRefused, Terminal
from nightmill.domain.filters import chosen
from nightmill.domain.job import Provider
from nightmill.domain.nearest import hint
from nightmill.domain.pricing import price_on
from nightmill.domain.wording import counted
from nightmill.environment import Connections
from nightmill.providers.registry import list_models
from nightmill.storage import batches, dead_letters, job_folders, maintenance, prices, standing, views
from nightmill.storage.job_folders import Found
from nightmill.storage.ledger import Connection, connect
from nightmill.storage.payloads import PayloadStore
from nightmill.storage.sources import SourceSnapshot
from nightmill.validators.definition import check_definition

OLDEST_POSTGRES = 16
CLOCK_LIMIT_S = 5.0
SWEEP_LIMIT = timedelta(hours=1)  # nightmill_maintenance runs every 15 minutes
PATIENCE_S = 10.0
DECISIVE = frozenset({"ledger: migrations", "ledger: login"})  # without these nothing else can be read there
_LOOK = "Look at the message of this kind of error; if it stays unclear, report it with the version of nightmill."


class Status(StrEnum):
    """How a check ended. Only FAILED makes the command fail."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was seen, and what to do about it unless it is ok."""

    check: str
    status: Status
    seen: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Doubt:
    """What a check saw when it ends with a warning."""

    seen: str
    remedy: str


Look = Callable[[], "str | Doubt"]


def attempt(check: str, look: Look) -> Finding:
    """Run one check. Messages of foreign errors can hold addresses with passwords: only their kind is told."""
    try:
        seen = look()
    except NightmillError as fault:
        return Finding(check, Status.FAILED, fault.cause, fault.remedy)
    except Exception as fault:
        return Finding(check, Status.FAILED, f"ended with {type(fault).__name__}", _LOOK)
    if isinstance(seen, Doubt):
        return Finding(check, Status.WARNING, seen.seen, seen.remedy)
    return Finding(check, Status.OK, seen)


def examine_ledger(conn: Connection, now: Callable[[], datetime]) -> Iterator[Finding]:
    """Version, migrations, login and clock of the ledger. The connection must be in autocommit."""
    yield attempt("ledger: Postgres version", lambda: _version(conn))
    yield attempt("ledger: migrations", lambda: _migrations(conn))
    yield attempt("ledger: login", lambda: _login(conn))
    yield attempt("ledger: clock", lambda: _clock(conn, now))


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
            return Doubt(f"{counted(seen.alerts, 'alert')} within a day", remedy)
        return "runs, no alerts" if seen.oldest_sweep else "nothing to do so far"

    return attempt("maintenance", look)


def open_ledger(dsn: str) -> Connection:
    """A connection for all checks. Raises what `connect` raises."""
    conn = connect(dsn, application="nightmill doctor")
    conn.autocommit = True
    return conn


def examine_store(store: Callable[[], PayloadStore]) -> Finding:
    """Write, read and delete a small object."""

    def look() -> str:
        here, path, content = store(), f"doctor-{secrets.token_hex(8)}", secrets.token_bytes(64)
        here.write(path, content)
        same = here.read(path) == content
        here.delete(path)
        if not same:
            raise Terminal("The object store returned other bytes than were written.", "Look for a cache in between.")
        return "written, read and deleted a small object"

    return attempt("object store", look)


def examine_jobs(
    connections: Connections, found: Found, ledger: Connection | None, now: Callable[[], datetime]
) -> Iterator[Finding]:
    """Each job folder with its view, source, provider, model and price."""
    for fault in found.faults:
        yield Finding("job folders", Status.FAILED, fault.cause, fault.remedy)
    if not found.folders:
        yield Finding(
            "job folders", Status.WARNING, "none found", f"Name their parent with --jobs or {job_folders.JOBS_PATH}."
        )
    account = _Accounts(connections)
    for name, folder in found.folders.items():
        yield from _job(_Job(name, folder), connections, account, ledger, now)


@dataclass(frozen=True, slots=True)
class _Job:
    name: str
    folder: Path

    def read(self) -> JobDefinition:
        definition = job_folders.read(self.folder)
        check_definition(definition)
        return definition


def _job(
    job: _Job, connections: Connections, accounts: _Accounts, ledger: Connection | None, now: Callable[[], datetime]
) -> Iterator[Finding]:
    valid = attempt(f"{job.name}: job folder", lambda: f"{job.read().name} is valid")
    yield valid
    if valid.status is Status.FAILED:
        return
    definition = job.read()
    provider = definition.job.provider
    yield attempt(f"{job.name}: source", lambda: _source(connections, definition, now()))
    yield attempt(f"{job.name}: provider", lambda: _provider(accounts, provider))
    if ledger is None:
        yield Finding(
            f"{job.name}: view",
            Status.NOT_CHECKED,
            "the ledger is not usable",
            "Mend what the checks of the ledger say first.",
        )
        return
    yield attempt(f"{job.name}: view", lambda: _view(ledger, definition))
    yield attempt(f"{job.name}: price", lambda: _price(ledger, provider.model, now()))
    yield attempt(f"{job.name}: dead letters", lambda: _dead_letters(ledger, definition, now()))


def _version(conn: Connection) -> str:
    major = standing.server_version(conn)
    if major < OLDEST_POSTGRES:
        raise ConfigError(
            f"The ledger runs on Postgres {major}; {OLDEST_POSTGRES} or later is needed.", "Upgrade the server."
        )
    return f"Postgres {major}"


def _migrations(conn: Connection) -> str:
    migrated = standing.migrated(conn)
    if migrated is None:
        raise ConfigError(
            "The database has no ledger, or the login may not read it.",
            "Run `python -m nightmill init-db`; then grant nightmill_writer to the login of nightmill_db.",
        )
    if migrated.unknown:
        raise ConfigError(
            f"The ledger was migrated by a newer nightmill (migration {max(migrated.unknown)} is unknown here).",
            "Install that version or a later one.",
        )
    if migrated.missing:
        raise ConfigError(
            f"The ledger lacks {', '.join(migrated.missing)}.", "Run `python -m nightmill init-db`, then `apply`."
        )
    return "current"


def _login(conn: Connection) -> str | Doubt:
    login = standing.login(conn)
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
    server = standing.clock(conn)
    after = now()
    apart = (server - (before + (after - before) / 2)).total_seconds()
    if abs(apart) > CLOCK_LIMIT_S:
        raise ConfigError(
            f"The ledger's clock and this machine's are {abs(apart):.0f} s apart.", "Set both by NTP; waits rely on it."
        )
    return f"{abs(apart):.1f} s apart"


def _source(connections: Connections, definition: JobDefinition, now: datetime) -> str:
    source = definition.job.source
    hurried = source.model_copy(update={"statement_timeout_s": min(source.statement_timeout_s, int(PATIENCE_S))})
    bound = {"data_interval_start": now, "data_interval_end": now, **chosen(source.filters, {})}
    with SourceSnapshot(connections.database(source.conn_id), hurried, definition.payload_columns) as snapshot:
        list(snapshot.rows(bound, 0))
    return f"{source.conn_id} answers, and the query returns every column that the job uses"


class _Accounts:
    """Model lists by account; each account is asked once."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.models = cache(self._ask)

    def _ask(self, adapter: str, conn_id: str) -> frozenset[str] | NightmillError:
        try:
            return list_models(adapter, self._connections.provider(conn_id, PATIENCE_S))
        except NightmillError as fault:
            return fault


def _provider(accounts: _Accounts, provider: Provider) -> str | Doubt:
    models = accounts.models(provider.adapter, provider.conn_id)
    if isinstance(models, ProviderRefused) and models.status == 404:
        return Doubt(
            f"{provider.conn_id} answers, but lists no models",
            "Check that the connection's host is the base URL (https://api.openai.com/v1), and the model's name.",
        )
    if isinstance(models, NightmillError):
        raise models
    if provider.model not in models:
        raise ConfigError(
            f"{provider.conn_id} accepts the key, but lists no model {provider.model!r}{hint(provider.model, models)}.",
            "Correct provider.model in job.yaml, or give the account access to it.",
        )
    return f"{provider.conn_id} accepts the key and has {provider.model}"


def _view(ledger: Connection, definition: JobDefinition) -> str:
    views.refuse_unapplied(ledger, definition)
    return f"results.{definition.job.publish.view} is set up"


def _price(ledger: Connection, model: str, now: datetime) -> str | Doubt:
    price = price_on(prices.of_model(ledger, model), model, now.date())
    if price is None:
        return Doubt(
            f"no price of {model} is known: estimates and receipts will say so",
            "Add it to nightmill.price with the day from which it holds.",
        )
    return f"{model}: known since {price.effective_from}"


def _dead_letters(ledger: Connection, definition: JobDefinition, now: datetime) -> str | Doubt:
    """Those of the newest batch that has ended: what is still open of earlier ones gave up in it again."""
    newest = batches.newest_settled(ledger, definition.name)
    if newest is None:
        return "no batch has ended yet"
    letters, oldest = dead_letters.standing(ledger, newest)
    broken = breaches(definition.job.dead_letters, letters, oldest, now)
    if broken:
        return Doubt(
            f"batch {newest}: {'; '.join(broken)}",
            f"Look with `python -m nightmill dead-letters --batch {newest} --count`, mend what they name, then replay.",
        )
    return f"{letters:,} in batch {newest}"

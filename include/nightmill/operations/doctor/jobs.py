"""Checks of each job folder: its view, source, provider, model, price and dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from nightmill.domain.errors import ConfigError, NightmillError, ProviderRefused
from nightmill.domain.pricing import price_on
from nightmill.domain.suggestions import aside
from nightmill.domain.wording import duration
from nightmill.jobs import job_folders
from nightmill.jobs.check.definition import check_definition
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.filters import chosen
from nightmill.jobs.job_folders import Found
from nightmill.jobs.rules.dead_letters import breaches
from nightmill.jobs.settings.provider_settings import Provider
from nightmill.operations.doctor.findings import Doubt, Finding, Status, attempt
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.port import Adapter, Routes
from nightmill.providers.registry import adapter
from nightmill.services.environment import Connections
from nightmill.storage import batches, dead_letters, holds, prices, views
from nightmill.storage.session import Connection
from nightmill.storage.sources import SourceSnapshot

_T = TypeVar("_T")
PATIENCE_S = 10.0
CLOCK_LIMIT_S = 60.0  # between the provider and this machine; its answers tell whole seconds


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
    if ledger is not None:
        yield from _orphans(ledger, found)


def _orphans(ledger: Connection, found: Found) -> Iterator[Finding]:
    """Views of jobs that were deleted or renamed."""
    try:
        left = views.orphans(ledger, found.folders.keys())
    except Exception as fault:  # as every check: only its kind is told
        yield attempt("views without a job folder", partial(_raise, fault))
        return
    for one in left:
        yield Finding(f"{one.job}: view", Status.WARNING, str(one), views.renamed(one.view_name, one.job))


def _raise(fault: Exception) -> str:
    raise fault


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
    answers = attempt(f"{job.name}: provider", lambda: _provider(accounts, provider))
    yield answers
    if answers.status is not Status.FAILED:
        yield attempt(f"{job.name}: provider's clock", lambda: _clock(accounts, provider))
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


def _source(connections: Connections, definition: JobDefinition, now: datetime) -> str:
    source = definition.job.source
    hurried = source.model_copy(update={"statement_timeout_s": min(source.statement_timeout_s, int(PATIENCE_S))})
    bound = {"data_interval_start": now, "data_interval_end": now, **chosen(source.filters, {})}
    with SourceSnapshot(connections.database(source.conn_id), hurried, definition.columns_read) as snapshot:
        list(snapshot.rows(bound, 0))
    return f"{source.conn_id} answers, and the query returns every column that the job uses"


class _Accounts:
    """Model lists, Batch APIs and clocks by account; each account is asked once."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.models = self._asked_once(lambda found: found.list_models, None)
        self.routes = self._asked_once(lambda found: found.missing_routes, Routes({}, {}))
        self.clock_behind = self._asked_once(lambda found: found.clock_behind, None)

    def is_open(self, conn_id: str) -> bool:
        """Whether its documents travel unencrypted to another machine."""
        account = self._connections.provider(conn_id, PATIENCE_S)
        return account.base_url.startswith("http:") and not account.is_loopback

    def _asked_once(
        self, part: Callable[[Adapter], Callable[[ProviderConnection], _T] | None], without: _T
    ) -> Callable[[str, str], _T | NightmillError]:
        """The answer to a question about an account, or the fault that came instead; `without` where the adapter cannot
        ask it."""

        @cache
        def ask(name: str, conn_id: str) -> _T | NightmillError:
            try:
                question = part(adapter(name))
                account = self._connections.provider(conn_id, PATIENCE_S)
                return without if question is None else question(account)
            except NightmillError as fault:
                return fault

        return ask


def _clock(accounts: _Accounts, provider: Provider) -> str | Doubt:
    """What was made when, at the provider, shows whether it took a create whose reply was lost."""
    behind = accounts.clock_behind(provider.adapter, provider.conn_id)
    if isinstance(behind, NightmillError):
        raise behind
    if behind is None:
        return f"{provider.conn_id} does not show what time it is there"
    apart_s, which = abs(behind.total_seconds()), "behind" if behind > timedelta() else "ahead of"
    if apart_s > CLOCK_LIMIT_S:
        return Doubt(
            f"the clock of {provider.conn_id} is {duration(apart_s)} {which} this machine's",
            "Set this machine's clock by NTP. If it is right, tell the provider: a create whose reply was lost is "
            "looked for by the provider's clock, which takes longer and may have to ask you.",
        )
    return f"{provider.conn_id} is {apart_s:.0f} s {which} this machine"


def _provider(accounts: _Accounts, provider: Provider) -> str | Doubt:
    models = accounts.models(provider.adapter, provider.conn_id)
    lists_none = models is None or (isinstance(models, ProviderRefused) and models.status in (404, 405, 501))
    if isinstance(models, NightmillError) and not lists_none:
        raise models
    unlisted = _batch_api(accounts, provider)
    if models is None or isinstance(models, NightmillError):
        return Doubt(
            f"{provider.conn_id} answers, but lists no models",
            "Check that the connection's host is the base URL that the provider documents, and the model's name.",
        )
    if provider.model not in models:
        wanted = f"{provider.model!r}{aside(provider.model, models)}"
        raise ConfigError(
            f"{provider.conn_id} accepts the key, but lists no model {wanted}.",
            "Correct provider.model in job.yaml, or give the account access to it.",
        )
    if unlisted:
        return unlisted
    told = f"{provider.conn_id} accepts the key and has {provider.model}"
    return told + (", over unencrypted http (allow_http)" if accounts.is_open(provider.conn_id) else "")


def _batch_api(accounts: _Accounts, provider: Provider) -> Doubt | None:
    """Raises ConfigError for a server without one."""
    routes = accounts.routes(provider.adapter, provider.conn_id)
    if isinstance(routes, NightmillError):
        raise routes
    if routes.missing:
        raise ConfigError(
            f"The server of {provider.conn_id} has no Batch API: it has no {_with_statuses(routes.missing)}.",
            "Check that the connection's host is the base URL that the provider documents; a server that answers chats "
            "only needs one with /files and /batches before it.",
        )
    if "/batches" not in routes.unlisted:  # nobody needs a list of files
        return None
    return Doubt(
        f"{provider.conn_id} takes batches, but does not list them ({_with_statuses(routes.unlisted)})",
        "Where the reply to a create is lost, nobody can find the batch again but in the provider's console.",
    )


def _with_statuses(paths: Mapping[str, int]) -> str:
    return ", ".join(f"{path} (HTTP {status})" for path, status in paths.items())


def _view(ledger: Connection, definition: JobDefinition) -> str | Doubt:
    views.refuse_unapplied(ledger, definition)
    view = definition.job.publish.view
    if view in views.unprotected(ledger):
        return Doubt(
            f"results.{view} is of an older version: a function of a reader's own sees rows that are not published",
            "Run `python -m nightmill apply` with the owner's connection.",
        )
    held = holds.open_of(ledger, view)
    if held:
        return Doubt("; ".join(map(str, held)), "; ".join(one.release for one in held))
    return f"results.{view} is set up"


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

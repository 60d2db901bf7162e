"""Finds adapters by the name that a job writes. They are imported only when they are asked for.

Each is an entry point of the group `nightmill.providers`: the entry's name is the adapter's, its value an `Adapter`
(`package.module:ADAPTER`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from importlib.metadata import EntryPoint
from importlib.util import find_spec

from nightmill.domain.errors import ConfigError, MissingExtra
from nightmill.domain.snapshots import BatchStatus
from nightmill.jobs.settings.adapters import BUILT_IN, adapters
from nightmill.providers.connection import ProviderConnection, RequestSpec
from nightmill.providers.json_in_prompt import words_for
from nightmill.providers.port import Adapter, BatchWatcher
from nightmill.providers.provider import Provider


def adapter(name: str) -> Adapter:
    """The adapter of that name. Raises ConfigError where there is none, or where it cannot be loaded."""
    entry = adapters().get(name)
    if entry is None:
        raise ConfigError(f"There is no provider adapter {name!r}.", f"Use one of: {', '.join(known_adapters())}.")
    return _loaded(entry)


def known_adapters() -> tuple[str, ...]:
    """Names that `adapter` takes."""
    return tuple(sorted(adapters()))


def open_provider(name: str, connection: ProviderConnection, spec: RequestSpec) -> Provider:
    """An adapter for one job's requests; the caller closes its transport. Raises ConfigError for an unknown adapter or
    task."""
    found = adapter(name)
    if spec.task not in found.dialects:
        raise ConfigError(
            f"The adapter {name!r} takes no requests for {spec.task!r} (provider.task).",
            f"Use one of: {', '.join(found.dialects)}.",
        )
    dialect = found.dialects[spec.task](spec)
    in_prompt = "" if dialect.takes_schema or spec.response_schema is None else words_for(spec.response_schema)
    return Provider(dialect, found.open_transport(connection, spec), in_prompt)


def open_watcher(name: str, connection: ProviderConnection) -> BatchWatcher:
    """The asynchronous side for one connection; the caller closes it. An adapter without one shows nothing: the shards'
    own wake-ups look. Raises ConfigError for an unknown adapter."""
    opener = adapter(name).open_watcher
    return _Blind() if opener is None else opener(connection)


class _Blind:
    async def statuses(self, _provider_ids: Iterable[str], _since: datetime) -> Mapping[str, BatchStatus]:
        return {}

    async def close(self) -> None:
        return


@cache
def _loaded(entry: EntryPoint) -> Adapter:
    if entry.name in BUILT_IN and find_spec(entry.name) is None:
        raise MissingExtra(f"The SDK of the provider adapter {entry.name!r}", entry.name)  # all three have one name
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
    else:
        if isinstance(found, Adapter):
            return found
        why = f"it is a {type(found).__name__}"
    raise ConfigError(
        f"The provider adapter {entry.name!r} cannot be loaded from {entry.value} ({why}).",
        "Install what it needs, or correct its entry point.",
    )

"""Opens adapters by the name that a job writes. Adapters are imported only when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from importlib.util import find_spec
from typing import TypeVar

from nightmill.domain.errors import ConfigError, MissingExtra
from nightmill.providers.connection import ProviderConnection, RequestSpec
from nightmill.providers.port import BatchProvider, BatchWatcher, Routes

_T = TypeVar("_T")


def open_provider(adapter: str, connection: ProviderConnection, request: RequestSpec) -> BatchProvider:
    """The synchronous side for one job's requests; the caller closes it. Raises ConfigError for an unknown adapter."""
    return _adapter(_PROVIDERS, adapter)(connection, request)


def open_watcher(adapter: str, connection: ProviderConnection) -> BatchWatcher:
    """The asynchronous side for one connection; the caller closes it. Raises ConfigError for an unknown adapter."""
    return _adapter(_WATCHERS, adapter)(connection)


def list_models(adapter: str, connection: ProviderConnection) -> frozenset[str]:
    """The models that the account may use. Raises ConfigError for an unknown adapter, and the provider's faults."""
    return _adapter(_MODELS, adapter)(connection)


def batch_routes(adapter: str, connection: ProviderConnection) -> Routes:
    """Which paths of its Batch API the server lacks. Raises ConfigError for an unknown adapter, and the provider's
    faults."""
    return _adapter(_ROUTES, adapter)(connection)


def clock_behind(adapter: str, connection: ProviderConnection) -> timedelta | None:
    """How far the provider's clock is behind ours; None where it does not show it. Raises as `list_models` does."""
    return _adapter(_CLOCKS, adapter)(connection)


def known_adapters() -> tuple[str, ...]:
    """Names that `open_provider` and `open_watcher` take."""
    return tuple(sorted(_PROVIDERS))


def _adapter(table: dict[str, _T], name: str) -> _T:
    if name not in table:
        raise ConfigError(f"There is no provider adapter {name!r}.", f"Use one of: {', '.join(known_adapters())}.")
    if find_spec(name) is None:  # the SDK and the extra that brings it are called as the adapter is
        raise MissingExtra(f"The SDK of the provider adapter {name!r}", name)
    return table[name]


def _openai_provider(connection: ProviderConnection, request: RequestSpec) -> BatchProvider:
    from nightmill.providers.openai_batch import OpenAIBatch

    return OpenAIBatch(connection, request)


def _openai_watcher(connection: ProviderConnection) -> BatchWatcher:
    from nightmill.providers.openai_watch import OpenAIWatcher

    return OpenAIWatcher(connection)


def _openai_models(connection: ProviderConnection) -> frozenset[str]:
    from nightmill.providers.openai_models import list_models

    return list_models(connection)


def _openai_routes(connection: ProviderConnection) -> Routes:
    from nightmill.providers.openai_routes import batch_routes

    return batch_routes(connection)


def _openai_clock(connection: ProviderConnection) -> timedelta | None:
    from nightmill.providers.openai_models import clock_behind

    return clock_behind(connection)


_PROVIDERS: dict[str, Callable[[ProviderConnection, RequestSpec], BatchProvider]] = {"openai": _openai_provider}
_WATCHERS: dict[str, Callable[[ProviderConnection], BatchWatcher]] = {"openai": _openai_watcher}
_MODELS: dict[str, Callable[[ProviderConnection], frozenset[str]]] = {"openai": _openai_models}
_ROUTES: dict[str, Callable[[ProviderConnection], Routes]] = {"openai": _openai_routes}
_CLOCKS: dict[str, Callable[[ProviderConnection], timedelta | None]] = {"openai": _openai_clock}

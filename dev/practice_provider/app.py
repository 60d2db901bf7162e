"""Puts the parts together and makes the ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from dev.practice_provider.batch_store import BatchStore
from dev.practice_provider.books import Books
from dev.practice_provider.fault_board import FaultBoard
from dev.practice_provider.file_store import FileStore
from dev.practice_provider.inference import Inference
from dev.practice_provider.ledger import Ledger
from dev.practice_provider.models.registry import ModelRegistry
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.routes import batches, control, files, realtime
from dev.practice_provider.routes.context import Address, Simulator, json_response
from dev.practice_provider.runner import BatchRunner
from dev.practice_provider.settings import Settings
from dev.practice_provider.tokens import counter


def build(settings: Settings, drop_connection: Callable[[Address], None]) -> Simulator:
    """Opens the data folder. Raises ConfigError when another simulator uses it."""
    ledger = Ledger(settings.data_dir)
    count = counter(settings.count_tokens)
    store = FileStore(ledger)
    faults = FaultBoard(ledger, settings.faults)
    registry = ModelRegistry(settings, count)
    inference = Inference(registry, count)
    return Simulator(
        settings=settings,
        ledger=ledger,
        files=store,
        batches=BatchStore(ledger),
        books=Books(ledger),
        faults=faults,
        registry=registry,
        inference=inference,
        runner=BatchRunner(settings, ledger, store, inference, faults),
        drop_connection=drop_connection,
    )


def application(simulator: Simulator) -> Starlette:
    """The runner lives as long as the application; the data folder is closed with it."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        simulator.runner.start()
        try:
            yield
        finally:
            simulator.runner.stop()
            simulator.registry.close()
            simulator.ledger.close()

    groups = (files, batches, realtime, control)
    return Starlette(
        routes=[one for group in groups for one in group.routes(simulator)],
        lifespan=lifespan,
        exception_handlers={404: _unknown_url, 405: _unknown_url, Exception: _server_error},
    )


async def _unknown_url(request: Request, _: Exception) -> Response:
    refusal = Refusal(404, f"Invalid URL ({request.method} {request.url.path})")
    return json_response(refusal.body(), refusal.status)


async def _server_error(_request: Request, _: Exception) -> Response:
    refusal = Refusal(500, "The server had an error while processing your request.", type="server_error")
    return json_response(refusal.body(), refusal.status)

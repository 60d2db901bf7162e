"""Puts the parts together and makes the ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
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
from dev.practice_provider.routes import control
from dev.practice_provider.routes.context import Address, Face, Simulator
from dev.practice_provider.runner import BatchRunner
from dev.practice_provider.settings import Settings
from dev.practice_provider.tokens import counter
from dev.practice_provider.vendor import Vendor, by_endpoint
from dev.practice_provider.vendors import anthropic, openai


def build(settings: Settings, drop_connection: Callable[[Address], None]) -> Simulator:
    """Opens the data folder. Raises ConfigError when another simulator uses it."""
    ledger = Ledger(settings.data_dir)
    count = counter(settings.count_tokens)
    store = FileStore(ledger)
    faults = FaultBoard(ledger, settings.faults)
    registry = ModelRegistry(settings, count)
    inference = Inference(registry, count)
    vendors: list[Vendor] = [
        anthropic.Anthropic(ledger, inference),
        openai.OpenAI(settings, ledger, store, inference, faults),
    ]
    return Simulator(
        settings=settings,
        ledger=ledger,
        files=store,
        batches=BatchStore(ledger),
        books=Books(ledger),
        faults=faults,
        registry=registry,
        inference=inference,
        runner=BatchRunner(settings, ledger, faults, by_endpoint(vendors)),
        drop_connection=drop_connection,
    )


def application(simulator: Simulator) -> Starlette:
    """The runner lives as long as the application; the data folder is closed with it.

    All vendors are spoken at once, by their addresses. Of two with the same address the first one takes the calls that
    it recognises.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        simulator.runner.start()
        try:
            yield
        finally:
            simulator.runner.stop()
            simulator.registry.close()
            simulator.ledger.close()

    spoken = [anthropic.spoken(simulator), openai.spoken(simulator)]
    faces = [face for face, _ in spoken]

    async def unknown_address(request: Request, _: Exception) -> Response:
        message = f"Invalid URL ({request.method} {request.url.path})"
        return _error(faces, request, Refusal(404, message))

    async def server_error(request: Request, _: Exception) -> Response:
        message = "The server had an error while processing your request."
        return _error(faces, request, Refusal(500, message, type="server_error"))

    return Starlette(
        routes=[one for _, routes in spoken for one in routes] + control.routes(simulator),
        lifespan=lifespan,
        exception_handlers={404: unknown_address, 405: unknown_address, Exception: server_error},
    )


def _error(faces: Sequence[Face], request: Request, refusal: Refusal) -> Response:
    face = next(one for one in faces if one.recognises(request))
    response = face.error(refusal)
    face.sign(request, response)
    return response

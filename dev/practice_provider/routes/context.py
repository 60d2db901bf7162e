"""What handlers share, and the frame around each of them: counting the call, the key, the vendor's error bodies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any, Protocol

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from dev.practice_provider.batch_store import BatchStore
from dev.practice_provider.books import Books
from dev.practice_provider.fault_board import FaultBoard
from dev.practice_provider.file_store import FileStore
from dev.practice_provider.inference import Inference
from dev.practice_provider.ledger import Ledger
from dev.practice_provider.models.registry import ModelRegistry
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.runner import BatchRunner
from dev.practice_provider.settings import Settings

Address = tuple[str, int]


@dataclass(slots=True)
class Simulator:
    """One simulator's parts. `drop_connection` closes the connection of a client without an answer."""

    settings: Settings
    ledger: Ledger
    files: FileStore
    batches: BatchStore
    books: Books
    faults: FaultBoard
    registry: ModelRegistry
    inference: Inference
    runner: BatchRunner
    drop_connection: Callable[[Address], None]

    async def hang_up(self, request: Request) -> None:
        """Drop the caller's connection; returns once the server has noticed and sends nothing more to it."""
        assert request.client is not None
        self.drop_connection((request.client.host, request.client.port))
        await asyncio.sleep(0.05)


class Face(Protocol):
    """How a vendor checks a call and words its answers."""

    def recognises(self, request: Request) -> bool:
        """Whether a call to no known address is meant for this vendor."""
        ...

    def check(self, request: Request) -> Refusal | None:
        """What is wrong with the call's key and headers."""
        ...

    def error(self, refusal: Refusal) -> Response: ...

    def sign(self, request: Request, response: Response) -> None:
        """Add the headers that every answer has."""
        ...


Handler = Callable[[Simulator, Request], Awaitable[Response | Refusal]]


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(orjson.dumps(content), status, headers, media_type="application/json")


def route(simulator: Simulator, face: Face, method: str, path: str, handler: Handler, of: type[Route] = Route) -> Route:
    """A route of a vendor's API: counted in the books when it arrives, whatever becomes of it, then checked for
    the key. `of` may narrow the calls that the route takes."""

    async def endpoint(request: Request) -> Response:
        await run_in_threadpool(simulator.books.count_call, f"{method} {path}")
        response = await _answer(simulator, face, f"{method} {path}", handler, request)
        face.sign(request, response)
        return response

    return of(path, endpoint, methods=[method])


async def _answer(simulator: Simulator, face: Face, name: str, handler: Handler, request: Request) -> Response:
    refusal = face.check(request)
    if refusal is not None:
        return face.error(refusal)
    if simulator.faults.plan.call:
        failed = await _failed_call(simulator, face, name, request)
        if failed is not None:
            return failed
    answer = await handler(simulator, request)
    response = refused(face, answer) if isinstance(answer, Refusal) else answer
    response.headers["date"] = formatdate(time.time() - simulator.faults.plan.clock_behind_s, usegmt=True)
    return response


def refused(face: Face, refusal: Refusal) -> Response:
    response = face.error(refusal)
    if refusal.retry_after_s is not None:
        response.headers["retry-after"] = str(refusal.retry_after_s)
    return response


async def _failed_call(simulator: Simulator, face: Face, name: str, request: Request) -> Response | None:
    """What the fault plan answers instead of the handler, or None."""
    fault = await run_in_threadpool(simulator.faults.call_fault, name, request.url.path, time.time())
    if fault is None:
        return None
    if fault.status is None:
        await simulator.hang_up(request)
    if fault.html:
        return HTMLResponse("<html><body>Service unavailable</body></html>", fault.status or 200, fault.headers)
    response = face.error(Refusal(fault.status or 500, fault.message, fault.code, type=fault.type))
    response.headers.update(fault.headers)
    return response


async def json_body(request: Request) -> dict[str, Any] | Refusal:
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        return Refusal(400, "We could not parse the JSON body of your request. It must be a JSON object.")
    return body


def page_limit(request: Request, default: int, most: int) -> int | Refusal:
    given = request.query_params.get("limit", str(default))
    if not given.isdecimal() or not 1 <= int(given) <= most:
        message = f"Invalid 'limit': expected an integer from 1 to {most}."
        return Refusal(400, message, code="invalid_value", param="limit")
    return int(given)


def page(data: list[dict[str, Any]], more: bool) -> dict[str, Any]:
    """A page of a list, with what every vendor says about it."""
    ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    return {"data": data, **ends, "has_more": more}

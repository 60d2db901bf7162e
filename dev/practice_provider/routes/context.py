"""What handlers share, and the frame around each of them: counting the call, the key, OpenAI's error bodies."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

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


Handler = Callable[[Simulator, Request], Awaitable[Response | Refusal]]


def json_response(content: Any, status: int = 200) -> Response:
    headers = {"x-request-id": f"req_{secrets.token_hex(12)}"}
    return Response(orjson.dumps(content), status, headers, media_type="application/json")


def route(simulator: Simulator, method: str, path: str, handler: Handler, *, counted: bool = True) -> Route:
    """A route of the provider's API: counted in the books when it arrives, whatever becomes of it, then checked for
    the key. The control routes (/_...) are neither counted nor guarded."""

    async def endpoint(request: Request) -> Response:
        if counted:
            await run_in_threadpool(simulator.books.count_call, f"{method} {path}")
            refusal = _check_key(simulator.settings.api_key, request)
            if refusal is not None:
                return json_response(refusal.body(), refusal.status)
            if simulator.faults.plan.call:
                failed = await _failed_call(simulator, f"{method} {path}", request)
                if failed is not None:
                    return failed
        answer = await handler(simulator, request)
        response = json_response(answer.body(), answer.status) if isinstance(answer, Refusal) else answer
        response.headers["date"] = formatdate(time.time() - simulator.faults.plan.clock_behind_s, usegmt=True)
        return response

    return Route(path, endpoint, methods=[method])


async def _failed_call(simulator: Simulator, name: str, request: Request) -> Response | None:
    """What the fault plan answers instead of the handler, or None."""
    fault = await run_in_threadpool(simulator.faults.call_fault, name, request.url.path, time.time())
    if fault is None:
        return None
    if fault.status is None:
        await simulator.hang_up(request)
    if fault.html:
        return HTMLResponse("<html><body>Service unavailable</body></html>", fault.status or 200, fault.headers)
    refusal = Refusal(fault.status or 500, fault.message, fault.code, type=fault.type)
    response = json_response(refusal.body(), refusal.status)
    response.headers.update(fault.headers)
    return response


def _check_key(expected: str | None, request: Request) -> Refusal | None:
    if expected is None:
        return None
    given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    if not given:
        return Refusal(401, "You didn't provide an API key.")
    if not secrets.compare_digest(given.encode(), expected.encode()):
        return Refusal(401, "Incorrect API key provided.", code="invalid_api_key")
    return None


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
    ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    return {"object": "list", "data": data, **ends, "has_more": more}

"""What a real provider does not have: its books and its fault plan, open to the test that runs it.

These addresses are neither counted in the books nor guarded by a key.
"""

from __future__ import annotations

from pydantic import ValidationError
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from dev.practice_provider.faults import FaultPlan
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.routes.context import Handler, Simulator, json_body, json_response


async def books(simulator: Simulator, request: Request) -> Response | Refusal:
    if request.query_params.get("summary") == "1":
        return json_response(await run_in_threadpool(simulator.books.summary))
    pieces = iterate_in_threadpool(simulator.books.as_json_pieces())
    return StreamingResponse(pieces, media_type="application/json")


async def read_faults(simulator: Simulator, _request: Request) -> Response | Refusal:
    return json_response(simulator.faults.plan.model_dump(mode="json"))


async def replace_faults(simulator: Simulator, request: Request) -> Response | Refusal:
    """POST replaces the whole plan, PATCH only the fields it names."""
    body = await json_body(request)
    if isinstance(body, Refusal):
        return body
    kept = simulator.faults.plan.model_dump() if request.method == "PATCH" else {}
    try:
        plan = FaultPlan.model_validate(kept | body)
    except ValidationError as error:
        return Refusal(400, f"This is not a fault plan: {error}")
    await run_in_threadpool(simulator.faults.replace, plan)
    simulator.runner.wake()
    return await read_faults(simulator, request)


async def fault_log(simulator: Simulator, _request: Request) -> Response | Refusal:
    return json_response({"data": await run_in_threadpool(simulator.faults.entries)})


def _route(simulator: Simulator, method: str, path: str, handler: Handler) -> Route:
    async def endpoint(request: Request) -> Response:
        answer = await handler(simulator, request)
        if isinstance(answer, Refusal):
            return json_response({"error": {"message": answer.message}}, answer.status)
        return answer

    return Route(path, endpoint, methods=[method])


def routes(simulator: Simulator) -> list[BaseRoute]:
    return [
        _route(simulator, "GET", "/_books", books),
        _route(simulator, "GET", "/_faults", read_faults),
        _route(simulator, "POST", "/_faults", replace_faults),
        _route(simulator, "PATCH", "/_faults", replace_faults),
        _route(simulator, "GET", "/_faults/log", fault_log),
    ]

"""/v1/messages, /v1/messages/count_tokens and Anthropic's /v1/models. Realtime requests are in the books under their
request id."""

from __future__ import annotations

import secrets
import time
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from dev.practice_provider.books import body_sha256
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.routes.context import Face, Simulator, json_body, json_response, page, page_limit, route
from dev.practice_provider.tokens import prompt_tokens
from dev.practice_provider.vendors.anthropic.bodies import MESSAGES, run
from dev.practice_provider.vendors.anthropic.face import new_request_id
from dev.practice_provider.vendors.anthropic.params import MOST_OUTPUT, check
from dev.practice_provider.vendors.anthropic.question import question

MOST_INPUT = 200_000


class OnlyAnthropic(Route):
    """An address that OpenAI has too: taken only with Anthropic's version header."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if all(name != b"anthropic-version" for name, _ in scope.get("headers", ())):
            return Match.NONE, {}
        return super().matches(scope)


async def create(simulator: Simulator, request: Request) -> Response | Refusal:
    params = await json_body(request)
    return params if isinstance(params, Refusal) else await run_in_threadpool(_answer, simulator, params)


def _answer(simulator: Simulator, params: dict[str, Any]) -> Response | Refusal:
    asked, now = question(params), time.time()
    outcome = run(simulator.inference, params, asked, secrets.token_hex(12), "standard", MOST_OUTPUT)
    if isinstance(outcome, Refusal):
        return outcome
    request_id, usage = new_request_id(), outcome.usage
    paid = (200, usage.prompt_tokens, usage.completion_tokens, now)
    simulator.books.record((None, request_id, MESSAGES, params["model"], body_sha256(asked), *paid))
    return json_response(outcome.body, headers={"request-id": request_id})


async def count_tokens(simulator: Simulator, request: Request) -> Response | Refusal:
    params = await json_body(request)
    if isinstance(params, Refusal):
        return params
    refusal = check({"max_tokens": 1} | params, simulator.inference.knows_chat, MOST_OUTPUT)
    if refusal is not None:
        return refusal
    tokens = await run_in_threadpool(prompt_tokens, question(params), simulator.inference.count)
    return json_response({"input_tokens": tokens})


async def list_models(simulator: Simulator, request: Request) -> Response | Refusal:
    limit = page_limit(request, 20, 1000)
    if isinstance(limit, Refusal):
        return limit
    names = [name for name in simulator.registry.names() if simulator.inference.knows_chat(name)]
    cursor = request.query_params.get("after_id")
    start = names.index(cursor) + 1 if cursor in names else 0
    return json_response(page([_model(name) for name in names[start : start + limit]], start + limit < len(names)))


async def retrieve_model(simulator: Simulator, request: Request) -> Response | Refusal:
    name = request.path_params["model"]
    return json_response(_model(name)) if simulator.inference.knows_chat(name) else Refusal(404, f"model: {name}")


def _model(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "type": "model",
        "display_name": name,
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": MOST_INPUT,
        "max_tokens": MOST_OUTPUT,
    }


def routes(simulator: Simulator, face: Face) -> list[BaseRoute]:
    return [
        route(simulator, face, "POST", MESSAGES, create),
        route(simulator, face, "POST", f"{MESSAGES}/count_tokens", count_tokens),
        route(simulator, face, "GET", "/v1/models", list_models, of=OnlyAnthropic),
        route(simulator, face, "GET", "/v1/models/{model:path}", retrieve_model, of=OnlyAnthropic),
    ]

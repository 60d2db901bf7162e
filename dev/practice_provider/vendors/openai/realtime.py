"""/v1/chat/completions, /v1/embeddings and /v1/models. Realtime requests are in the books under their request id."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from dev.practice_provider.books import body_sha256
from dev.practice_provider.refusal import Refusal, missing_parameter, model_not_found
from dev.practice_provider.routes.context import Face, Handler, Simulator, json_body, json_response, route
from dev.practice_provider.vendor import Completed
from dev.practice_provider.vendors.openai.bodies import CHAT, EMBEDDINGS, run


def completion(endpoint: str) -> Handler:
    async def handler(simulator: Simulator, request: Request) -> Response | Refusal:
        body = await json_body(request)
        if isinstance(body, Refusal):
            return body
        if not isinstance(body.get("model"), str):
            return missing_parameter("model")
        return await run_in_threadpool(_answer, simulator, endpoint, body)

    return handler


def _answer(simulator: Simulator, endpoint: str, body: Mapping[str, Any]) -> Response | Refusal:
    now = time.time()
    outcome = run(simulator.inference, endpoint, body, now, secrets.token_hex(12), None)
    if isinstance(outcome, Refusal):
        return outcome
    request_id = f"req_{secrets.token_hex(12)}"
    _record(simulator, endpoint, body, outcome, request_id, now)
    return json_response(outcome.body, headers={"x-request-id": request_id})


def _record(
    simulator: Simulator, endpoint: str, body: Mapping[str, Any], outcome: Completed, request_id: str, now: float
) -> None:
    usage = outcome.usage
    paid = (200, usage.prompt_tokens, usage.completion_tokens, now)
    simulator.books.record((None, request_id, endpoint, body["model"], body_sha256(body), *paid))


async def list_models(simulator: Simulator, _request: Request) -> Response | Refusal:
    return json_response({"object": "list", "data": [_model(name) for name in simulator.registry.names()]})


async def retrieve_model(simulator: Simulator, request: Request) -> Response | Refusal:
    name = request.path_params["model"]
    if not (simulator.inference.knows_chat(name) or simulator.inference.knows_embedding(name)):
        return model_not_found(name)
    return json_response(_model(name))


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "nightmill"}


def routes(simulator: Simulator, face: Face) -> list[BaseRoute]:
    return [
        route(simulator, face, "POST", CHAT, completion(CHAT)),
        route(simulator, face, "POST", EMBEDDINGS, completion(EMBEDDINGS)),
        route(simulator, face, "GET", "/v1/models", list_models),
        route(simulator, face, "GET", "/v1/models/{model:path}", retrieve_model),
    ]

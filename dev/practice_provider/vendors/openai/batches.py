"""/v1/batches as OpenAI documents it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from dev.practice_provider.batch_states import EDGES, BatchRow, Status
from dev.practice_provider.faults import Listing
from dev.practice_provider.file_store import StoredFile
from dev.practice_provider.refusal import Refusal, missing_parameter
from dev.practice_provider.routes.context import Face, Simulator, json_body, json_response, page, page_limit, route
from dev.practice_provider.routes.create_reply import reply_to_create
from dev.practice_provider.vendors.openai.bodies import ENDPOINTS
from dev.practice_provider.vendors.openai.shown import batch_shown, listing_shown

MOST_PAIRS, LONGEST_KEY, LONGEST_VALUE = 16, 64, 512
MOST_LISTED = 10_000  # while the listing is odd
_PARAMETERS = frozenset({"endpoint", "input_file_id", "completion_window", "metadata", "output_expires_after"})


async def create(simulator: Simulator, request: Request) -> Response | Refusal:
    body = await json_body(request)
    if isinstance(body, Refusal):
        return body
    refusal = _check_create(body)
    if refusal is not None:
        return refusal
    batch = await run_in_threadpool(_accept, simulator, body)
    if isinstance(batch, Refusal):
        return batch
    simulator.runner.wake()
    shown = json_response(batch_shown(simulator.faults.plan, batch))
    return await reply_to_create(simulator, request, batch.id, shown)


def _accept(simulator: Simulator, body: Mapping[str, Any]) -> BatchRow | Refusal:
    now = time.time()
    file_id = body["input_file_id"]
    file: StoredFile | None = simulator.files.find(file_id, now)
    if file is None:
        return Refusal(404, f"Input file not found: {file_id}", code="not_found", param="input_file_id")
    if file.purpose != "batch":
        message = "The input file of a batch must have been uploaded with the purpose 'batch'."
        return Refusal(400, message, code="invalid_value", param="input_file_id")
    output_expires = body.get("output_expires_after")
    return simulator.batches.add(
        body["endpoint"],
        file.id,
        body.get("metadata"),
        now,
        now + simulator.settings.completion_window_s,
        None if output_expires is None else output_expires["seconds"],
    )


def _check_create(body: Mapping[str, Any]) -> Refusal | None:
    for name in ("input_file_id", "endpoint", "completion_window"):
        if body.get(name) is None:
            return missing_parameter(name)
    unknown = next(iter(body.keys() - _PARAMETERS), None)
    if unknown is not None:
        return Refusal(400, f"Unknown parameter: '{unknown}'.", code="unknown_parameter", param=unknown)
    if not isinstance(body["input_file_id"], str):
        return Refusal(400, "'input_file_id' must be a string.", code="invalid_type", param="input_file_id")
    if body["endpoint"] not in ENDPOINTS:
        message = f"'endpoint' must be one of {', '.join(ENDPOINTS)}."
        return Refusal(400, message, code="invalid_value", param="endpoint")
    if body["completion_window"] != "24h":
        return Refusal(400, "'completion_window' must be 24h.", code="invalid_value", param="completion_window")
    return _check_output_expiry(body.get("output_expires_after")) or _check_metadata(body.get("metadata"))


def _check_output_expiry(given: Any) -> Refusal | None:
    if given is None:
        return None
    seconds = given.get("seconds") if isinstance(given, dict) else None
    if isinstance(seconds, int) and 3600 <= seconds <= 2_592_000 and given.get("anchor") == "created_at":
        return None
    message = "'output_expires_after' needs the anchor 'created_at' and 3600 to 2592000 seconds."
    return Refusal(400, message, code="invalid_value", param="output_expires_after")


def _check_metadata(metadata: Any) -> Refusal | None:
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        return Refusal(400, "'metadata' must be an object.", code="invalid_type", param="metadata")
    if len(metadata) > MOST_PAIRS:
        message = f"'metadata' has too many properties: at most {MOST_PAIRS} are allowed."
        return Refusal(400, message, code="object_above_max_properties", param="metadata")
    for key, value in metadata.items():
        where = f"metadata.{key[:LONGEST_KEY]}"
        if len(key) > LONGEST_KEY:
            message = f"A key of 'metadata' is longer than {LONGEST_KEY} characters."
            return Refusal(400, message, code="string_above_max_length", param=where)
        if not isinstance(value, str):
            return Refusal(400, f"'{where}' must be a string.", code="invalid_type", param=where)
        if len(value) > LONGEST_VALUE:
            message = f"'{where}' is longer than {LONGEST_VALUE} characters."
            return Refusal(400, message, code="string_above_max_length", param=where)
    return None


async def _find(simulator: Simulator, batch_id: str) -> BatchRow | Refusal:
    batch = await run_in_threadpool(simulator.batches.find, batch_id)
    if batch is None or batch.endpoint not in ENDPOINTS:
        return Refusal(404, f"No batch found with id '{batch_id}'.")
    return batch


async def retrieve(simulator: Simulator, request: Request) -> Response | Refusal:
    batch = await _find(simulator, request.path_params["batch_id"])
    if isinstance(batch, Refusal):
        return batch
    if await run_in_threadpool(simulator.faults.hides, batch.id, batch.created_at, time.time()):
        return Refusal(404, f"No batch found with id '{batch.id}'.")
    told, faults = batch_shown(simulator.faults.plan, batch), simulator.faults
    has_files = bool(batch.output_file_id or batch.error_file_id)
    if has_files and await run_in_threadpool(faults.take, "hide_files", {"batch": batch.id}, time.time()):
        told |= {"output_file_id": None, "error_file_id": None}
    if has_files and await run_in_threadpool(faults.take, "hide_counts", {"batch": batch.id}, time.time()):
        told |= {"request_counts": {"total": 0, "completed": 0, "failed": 0}, "usage": None}
    return json_response(told)


async def list_batches(simulator: Simulator, request: Request) -> Response | Refusal:
    limit = page_limit(request, 20, 100)
    if isinstance(limit, Refusal):
        return limit
    cursor = request.query_params.get("after")
    if simulator.faults.plan.listing is not None:
        return await run_in_threadpool(_odd_listing, simulator, simulator.faults.plan.listing, limit, cursor)
    after = None if cursor is None else await _find(simulator, cursor)
    if isinstance(after, Refusal):
        return after
    found, more = await run_in_threadpool(simulator.batches.page, ENDPOINTS, limit, after)
    return _page([batch_shown(simulator.faults.plan, batch) for batch in found], more)


def _odd_listing(simulator: Simulator, odd: Listing, limit: int, cursor: str | None) -> Response:
    found, _ = simulator.batches.page(ENDPOINTS, MOST_LISTED, None)
    listed = listing_shown(simulator.faults.plan, odd, found)
    simulator.faults.note("listing", {"entries": len(listed), "after": cursor}, time.time())
    if odd.repeating:
        return _page(listed[:limit], True)
    ids = [one["id"] for one in listed]
    start = ids.index(cursor) + 1 if cursor in ids else 0
    return _page(listed[start : start + limit], start + limit < len(listed))


def _page(shown: list[dict[str, Any]], more: bool) -> Response:
    return json_response({"object": "list"} | page(shown, more))


async def cancel(simulator: Simulator, request: Request) -> Response | Refusal:
    """Ends of a batch are refused with 409; cancelling twice is not an error."""
    batch_id = request.path_params["batch_id"]
    while True:
        batch = await _find(simulator, batch_id)
        if isinstance(batch, Refusal):
            return batch
        if batch.status == Status.CANCELLING:
            return json_response(batch_shown(simulator.faults.plan, batch))
        if Status.CANCELLING not in EDGES[Status(batch.status)]:
            return Refusal(409, f"Cannot cancel a batch with status '{batch.status}'.", code="invalid_status")
        now = time.time()
        if await run_in_threadpool(simulator.batches.move, batch, Status.CANCELLING, now):
            simulator.runner.wake()
            # Not read again: by now the batch may have ended.
            moved = replace(batch, status=Status.CANCELLING.value, cancelling_at=now)
            return json_response(batch_shown(simulator.faults.plan, moved))


def routes(simulator: Simulator, face: Face) -> list[BaseRoute]:
    return [
        route(simulator, face, "POST", "/v1/batches", create),
        route(simulator, face, "GET", "/v1/batches", list_batches),
        route(simulator, face, "GET", "/v1/batches/{batch_id}", retrieve),
        route(simulator, face, "POST", "/v1/batches/{batch_id}/cancel", cancel),
    ]

"""/v1/messages/batches as Anthropic documents it.

What no documentation says, and is chosen here: cancelling or deleting at the wrong time is a 400, and so is a cursor
that names no batch; results that are not there yet or any more are a 404.
"""

from __future__ import annotations

import secrets
import time
from array import array
from dataclasses import replace
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from dev.practice_provider import input_index
from dev.practice_provider.batch_states import EDGES, BatchRow, Status, stem
from dev.practice_provider.execution import output_id
from dev.practice_provider.faults import Listing
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.refused_files import strike
from dev.practice_provider.routes.context import Simulator, json_response, page, page_limit, route
from dev.practice_provider.routes.create_reply import reply_to_create
from dev.practice_provider.routes.download import Download, send
from dev.practice_provider.vendors.anthropic.create import TOO_LARGE, requests_in
from dev.practice_provider.vendors.anthropic.face import AnthropicFace
from dev.practice_provider.vendors.anthropic.message_batches import MessageBatches
from dev.practice_provider.vendors.anthropic.shown import batch_shown, has_ended, listing_shown, no_counts

BATCHES = "/v1/messages/batches"
BATCH = BATCHES + "/{batch_id}"
MOST_LISTED = 10_000  # while the listing is odd
_LAST = 2**62


class Batches:
    def __init__(self, store: MessageBatches, face: AnthropicFace) -> None:
        self._store = store
        self._face = face

    async def create(self, simulator: Simulator, request: Request) -> Response | Refusal:
        most = simulator.settings.anthropic.bytes_per_batch
        announced = request.headers.get("content-length", "0")
        if announced.isdecimal() and int(announced) > most:
            return Refusal(413, TOO_LARGE)
        body = await request.body()
        if len(body) > most:
            return Refusal(413, TOO_LARGE)
        batch = await run_in_threadpool(self._accept, simulator, request, body)
        if isinstance(batch, Refusal):
            return batch
        simulator.runner.wake()
        return await reply_to_create(simulator, request, batch.id, json_response(_shown(simulator, request, batch)))

    def _accept(self, simulator: Simulator, request: Request, body: bytes) -> BatchRow | Refusal:
        settings, now = simulator.settings, time.time()
        requests = requests_in(body, settings.anthropic)
        if isinstance(requests, Refusal):
            return requests
        limit = settings.anthropic.queued_requests
        if limit is not None and self._store.queued() + len(requests) > limit:
            message = f"This request would exceed your organization's limit of {limit:,} batch requests in the queue."
            return Refusal(429, message, retry_after_s=settings.anthropic.retry_after_s)
        batch_id = f"msgbatch_{secrets.token_hex(12)}"
        requests_id = f"requests-{stem(batch_id)}"
        betas = [one.strip() for one in request.headers.get("anthropic-beta", "").split(",") if one.strip()]
        _write_requests(simulator, batch_id, requests_id, requests, betas)
        refusal = _struck(simulator, batch_id, requests_id)
        if refusal is not None:
            return refusal
        # Before the batch is known: the runner may execute all of it at once.
        simulator.faults.take_expiry(batch_id, len(requests))
        model, expires_at = str(requests[0]["params"].get("model")), now + settings.completion_window_s
        workspace = self._face.workspace(request)
        return self._store.add(batch_id, requests_id, workspace, model, len(requests), now, expires_at)

    async def _find(self, simulator: Simulator, request: Request) -> BatchRow | Refusal:
        return await run_in_threadpool(self._known, simulator, request, request.path_params["batch_id"])

    def _known(self, simulator: Simulator, request: Request, batch_id: str) -> BatchRow | Refusal:
        batch = self._store.find(self._face.workspace(request), batch_id)
        if batch is None or simulator.faults.hides(batch.id, batch.created_at, time.time()):
            return Refusal(404, f"Message batch with id {batch_id} not found.")
        return batch

    async def retrieve(self, simulator: Simulator, request: Request) -> Response | Refusal:
        batch = await self._find(simulator, request)
        if isinstance(batch, Refusal):
            return batch
        shown, take, detail = _shown(simulator, request, batch), simulator.faults.take, {"batch": batch.id}
        if has_ended(batch) and await run_in_threadpool(take, "hide_files", detail, time.time()):
            shown["results_url"] = None
        if has_ended(batch) and await run_in_threadpool(take, "hide_counts", detail, time.time()):
            shown["request_counts"] = no_counts()
        return json_response(shown)

    async def results(self, simulator: Simulator, request: Request) -> Response | Refusal:
        batch = await self._find(simulator, request)
        if isinstance(batch, Refusal):
            return batch
        if _shown(simulator, request, batch)["results_url"] is None:
            why = "has been archived" if has_ended(batch) else "has not ended yet"
            return Refusal(404, f"Message batch {batch.id} {why}: it has no results.")
        path = simulator.ledger.path_of(output_id(batch.id))
        path.touch()  # every line may have been lost
        name = f"{batch.id}_results.jsonl"
        file = Download(batch.id, path, name, batch.output_bytes, "application/x-jsonl", is_result=True)
        return await send(simulator, request, file)

    async def cancel(self, simulator: Simulator, request: Request) -> Response | Refusal:
        """Cancelling twice is not an error."""
        while True:
            batch = await self._find(simulator, request)
            if isinstance(batch, Refusal):
                return batch
            if has_ended(batch):
                return Refusal(400, f"Message batch {batch.id} has ended and cannot be canceled.")
            if Status.CANCELLING not in EDGES[Status(batch.status)]:
                return json_response(_shown(simulator, request, batch))
            now = time.time()
            if await run_in_threadpool(simulator.batches.move, batch, Status.CANCELLING, now):
                simulator.runner.wake()
                # Not read again: by now the batch may have ended.
                moved = replace(batch, status=Status.CANCELLING.value, cancelling_at=now)
                return json_response(_shown(simulator, request, moved))

    async def delete(self, simulator: Simulator, request: Request) -> Response | Refusal:
        batch = await self._find(simulator, request)
        if isinstance(batch, Refusal):
            return batch
        if not has_ended(batch):
            return Refusal(400, f"Message batch {batch.id} is being processed: cancel it before you delete it.")
        await run_in_threadpool(self._store.delete, batch.id)
        simulator.ledger.path_of(output_id(batch.id)).unlink(missing_ok=True)
        return json_response({"id": batch.id, "type": "message_batch_deleted"})

    async def list_batches(self, simulator: Simulator, request: Request) -> Response | Refusal:
        limit = page_limit(request, 20, 1000)
        if isinstance(limit, Refusal):
            return limit
        return await run_in_threadpool(self._page, simulator, request, limit)

    def _page(self, simulator: Simulator, request: Request, limit: int) -> Response | Refusal:
        query, workspace = request.query_params, self._face.workspace(request)
        if "after_id" in query and "before_id" in query:
            return Refusal(400, "after_id and before_id: only one of them may be given")
        if simulator.faults.plan.listing is not None:
            return self._odd_page(simulator, request, simulator.faults.plan.listing, limit)
        cursor = query.get("after_id") or query.get("before_id")
        at = None if cursor is None else self._store.find(workspace, cursor)
        if cursor is not None and at is None:
            return Refusal(400, f"{cursor} is not a message batch of this workspace")
        if at is not None and "before_id" in query:
            found, more = self._store.newer(workspace, at.seq, limit)
        else:
            found, more = self._store.older(workspace, at.seq if at else _LAST, limit)
        return json_response(page([_shown(simulator, request, one) for one in found], more))

    def _odd_page(self, simulator: Simulator, request: Request, odd: Listing, limit: int) -> Response:
        found, _ = self._store.older(self._face.workspace(request), _LAST, MOST_LISTED)
        now, cursor = time.time(), request.query_params.get("after_id")
        shown = [_shown(simulator, request, one) for one in found]
        listed = listing_shown(simulator.faults.plan, odd, found, shown, now)
        simulator.faults.note("listing", {"entries": len(listed), "after": cursor}, now)
        if odd.repeating:
            return json_response(page(listed[:limit], True))
        ids = [one["id"] for one in listed]
        start = ids.index(cursor) + 1 if cursor in ids else 0
        return json_response(page(listed[start : start + limit], start + limit < len(listed)))

    def routes(self, simulator: Simulator) -> list[BaseRoute]:
        face = self._face
        return [
            route(simulator, face, "POST", BATCHES, self.create),
            route(simulator, face, "GET", BATCHES, self.list_batches),
            route(simulator, face, "GET", BATCH, self.retrieve),
            route(simulator, face, "DELETE", BATCH, self.delete),
            route(simulator, face, "POST", BATCH + "/cancel", self.cancel),
            route(simulator, face, "GET", BATCH + "/results", self.results),
        ]


def _shown(simulator: Simulator, request: Request, batch: BatchRow) -> dict[str, Any]:
    base_url, archive_s = str(request.base_url).rstrip("/"), simulator.settings.anthropic.archive_s
    return batch_shown(simulator.faults.plan, batch, base_url, archive_s, time.time())


def _write_requests(
    simulator: Simulator, batch_id: str, requests_id: str, requests: list[dict[str, Any]], betas: list[str]
) -> None:
    """One line for each request, with the beta headers of the create: they belong to all of its lines. Tokens are
    counted when a line is executed."""
    starts, end = array("Q", [0]), 0
    with simulator.ledger.path_of(requests_id).open("wb") as target:
        for one in requests:
            end += target.write(orjson.dumps({**one, "betas": betas}, option=orjson.OPT_APPEND_NEWLINE))
            starts.append(end)
    input_index.save(input_index.path_of(simulator.ledger, batch_id), starts, array("I", bytes(4 * len(requests))))


def _struck(simulator: Simulator, batch_id: str, requests_id: str) -> Refusal | None:
    """The refusal of a good create, if the fault plan says so: as 413 or as 400, by the fault's code."""
    struck = strike(simulator.faults, None, simulator.ledger.path_of(requests_id))
    if struck is None:
        return None
    simulator.ledger.path_of(requests_id).unlink()
    input_index.path_of(simulator.ledger, batch_id).unlink()
    fault, _ = struck
    return Refusal(413 if fault.code == "request_too_large" else 400, fault.message)

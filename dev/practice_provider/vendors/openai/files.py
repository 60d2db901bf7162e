"""/v1/files as OpenAI documents it, for batch files only."""

from __future__ import annotations

import asyncio
import time

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from dev.practice_provider.execution import is_output
from dev.practice_provider.file_store import StoredFile, file_not_found
from dev.practice_provider.refusal import Refusal, missing_parameter
from dev.practice_provider.routes.context import Face, Simulator, json_response, page, page_limit, route
from dev.practice_provider.routes.download import Download, send, there_so_far
from dev.practice_provider.vendors.openai.shown import file_shown

_SHORTEST_LIFE_S, _LONGEST_LIFE_S = 3600, 2_592_000


async def upload(simulator: Simulator, request: Request) -> Response | Refusal:
    async with request.form(max_files=1, max_fields=16) as form:
        file = form.get("file")
        refusal = _check_upload(simulator, form, file)
        if refusal is not None:
            return refusal
        assert isinstance(file, UploadFile)
        expires_s = _expiry(form.get("expires_after[seconds]"))
        if isinstance(expires_s, Refusal):
            return expires_s
        name, now = file.filename or "", time.time()
        stored = await run_in_threadpool(simulator.files.add_upload, file.file, name, now, expires_s)
    delay = simulator.faults.plan.upload_delay_s
    if delay:
        await run_in_threadpool(simulator.faults.note, "upload_delay_s", {"file": stored.id}, time.time())
        await asyncio.sleep(delay)
    return json_response(file_shown(simulator.faults.plan, stored))


def _check_upload(simulator: Simulator, form: FormData, file: object) -> Refusal | None:
    purpose = form.get("purpose")
    if not isinstance(file, UploadFile):
        return missing_parameter("file")
    if purpose is None:
        return missing_parameter("purpose")
    if purpose != "batch":
        return Refusal(400, "Only the purpose 'batch' is supported here.", code="invalid_value", param="purpose")
    if not (file.filename or "").endswith(".jsonl"):
        message = "Invalid file format for Batch API. Must be .jsonl"
        return Refusal(400, message, code="invalid_file_format", param="file")
    if (file.size or 0) > simulator.settings.bytes_per_file:
        message = f"File is too large. A batch input file may have at most {simulator.settings.bytes_per_file} bytes."
        return Refusal(413, message, code="file_too_large", param="file")
    return None


def _expiry(given: object) -> int | Refusal | None:
    if given is None:
        return None
    if not (isinstance(given, str) and given.isdecimal() and _SHORTEST_LIFE_S <= int(given) <= _LONGEST_LIFE_S):
        message = f"'expires_after.seconds' must be from {_SHORTEST_LIFE_S} to {_LONGEST_LIFE_S}."
        return Refusal(400, message, code="invalid_value", param="expires_after.seconds")
    return int(given)


async def list_files(simulator: Simulator, request: Request) -> Response | Refusal:
    limit = page_limit(request, 10_000, 10_000)
    if isinstance(limit, Refusal):
        return limit
    query = request.query_params
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        return Refusal(400, "'order' must be asc or desc.", code="invalid_value", param="order")
    after = await _find(simulator, query["after"]) if "after" in query else None
    if isinstance(after, Refusal):
        return after
    found, more = await run_in_threadpool(
        simulator.files.page, time.time(), query.get("purpose"), limit, after, "asc" if order == "asc" else "desc"
    )
    shown = [file_shown(simulator.faults.plan, file) for file in found]
    return json_response({"object": "list"} | page(shown, more))


async def _find(simulator: Simulator, file_id: str) -> StoredFile | Refusal:
    file = await run_in_threadpool(simulator.files.find, file_id, time.time())
    return file_not_found(file_id) if file is None else file


async def retrieve(simulator: Simulator, request: Request) -> Response | Refusal:
    file = await _find(simulator, request.path_params["file_id"])
    if isinstance(file, Refusal):
        return file
    told = file_shown(simulator.faults.plan, file)
    short = await run_in_threadpool(there_so_far, simulator, _download(simulator, file), None)
    return json_response(told if short is None else told | {"bytes": len(short)})


async def delete(simulator: Simulator, request: Request) -> Response | Refusal:
    file = await _find(simulator, request.path_params["file_id"])
    if isinstance(file, Refusal):
        return file
    await run_in_threadpool(simulator.files.delete, file.id)
    return json_response({"id": file.id, "object": "file", "deleted": True})


async def content(simulator: Simulator, request: Request) -> Response | Refusal:
    file = await _find(simulator, request.path_params["file_id"])
    if isinstance(file, Refusal):
        return file
    return await send(simulator, request, _download(simulator, file))


def _download(simulator: Simulator, file: StoredFile) -> Download:
    path = simulator.files.path_of(file.id)
    return Download(file.id, path, file.filename, file.bytes, "application/octet-stream", is_output(file.id))


def routes(simulator: Simulator, face: Face) -> list[BaseRoute]:
    return [
        route(simulator, face, "POST", "/v1/files", upload),
        route(simulator, face, "GET", "/v1/files", list_files),
        route(simulator, face, "GET", "/v1/files/{file_id}", retrieve),
        route(simulator, face, "DELETE", "/v1/files/{file_id}", delete),
        route(simulator, face, "GET", "/v1/files/{file_id}/content", content),
    ]

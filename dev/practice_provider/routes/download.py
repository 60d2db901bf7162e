"""A file on its way to the client: whole, late, slow, cut or not there yet, as the fault plan says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse

from dev.practice_provider.faults import FaultPlan
from dev.practice_provider.routes.context import Simulator


@dataclass(frozen=True, slots=True)
class Download:
    """`id` names the file in the fault log. `is_result`: the fault `short_content` may strike it."""

    id: str
    path: Path
    name: str
    bytes: int
    media_type: str
    is_result: bool


async def send(simulator: Simulator, request: Request, file: Download) -> Response:
    plan = simulator.faults.plan
    if plan.content_delay_s or plan.slow_content_ms:
        await run_in_threadpool(simulator.faults.note, "slow_content", {"file": file.id}, time.time())
    await asyncio.sleep(plan.content_delay_s)
    cut = await _cut(simulator, request, file)
    if cut is not None:
        return cut
    short = await run_in_threadpool(there_so_far, simulator, file, time.time())
    if short is not None:
        return Response(short, media_type=file.media_type)
    if not plan.slow_content_ms:
        return FileResponse(file.path, media_type=file.media_type, filename=file.name)
    headers = {"content-length": str(file.bytes)}
    return StreamingResponse(_slowly(file.path, plan), headers=headers, media_type=file.media_type)


def there_so_far(simulator: Simulator, file: Download, now: float | None) -> bytes | None:
    """What there is of a result file so far, if the fault plan lets it come later than its batch's end. `now` is None
    at a look at the size, which is not counted."""
    if simulator.faults.plan.short_content is None or not file.is_result:
        return None
    return simulator.faults.short_content(file.id, file.path.read_bytes(), now)


async def _cut(simulator: Simulator, request: Request, file: Download) -> Response | None:
    """The half of a file, if the fault plan says so: as a broken connection, or as if it were the whole."""
    detail, take = {"file": file.id}, simulator.faults.take
    announced = await run_in_threadpool(take, "cut_content", detail, time.time())
    if not announced and not await run_in_threadpool(take, "cut_content_unannounced", detail, time.time()):
        return None
    whole = await run_in_threadpool(file.path.read_bytes)
    half = whole[: len(whole) // 2]
    if not announced:
        half = half[: half.rfind(b"\n") + 1]

    async def pieces() -> AsyncIterator[bytes]:
        yield half
        if announced:
            await asyncio.sleep(0.05)  # so that the half is on its way
            await simulator.hang_up(request)

    headers = {"content-length": str(file.bytes)} if announced else None
    return StreamingResponse(pieces(), headers=headers, media_type=file.media_type)


async def _slowly(path: Path, plan: FaultPlan) -> AsyncIterator[bytes]:
    with path.open("rb") as source:
        while chunk := source.read(plan.content_chunk_bytes):
            yield chunk
            await asyncio.sleep(plan.slow_content_ms / 1000)

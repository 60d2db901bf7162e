"""What a client gets to know of a batch that was accepted."""

from __future__ import annotations

import asyncio
import time

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from dev.practice_provider.refusal import Refusal
from dev.practice_provider.routes.context import Simulator


async def reply_to_create(simulator: Simulator, request: Request, batch_id: str, reply: Response) -> Response | Refusal:
    """`reply`, unless the fault plan delays it, loses it or puts an error in its place."""
    detail, take = {"batch": batch_id}, simulator.faults.take
    delay = simulator.faults.plan.create_delay_s
    if delay:
        await run_in_threadpool(simulator.faults.note, "create_delay_s", detail, time.time())
        await asyncio.sleep(delay)
    if await run_in_threadpool(take, "drop_create_reply", detail, time.time()):
        await simulator.hang_up(request)  # the answer below then goes nowhere
    elif await run_in_threadpool(take, "fail_create_after_accept", detail, time.time()):
        message = "The server had an error while processing your request. Sorry about that!"
        return Refusal(500, message, type="server_error")
    return reply

"""The local provider behind a server that changes what it says, byte by byte where a test wants it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from providers.scripted_server import Request, ScriptedServer, answer

from support.pipeline import Pipeline

HUGE = "a number of 5,000 digits"  # what no JSON writer of Python's will write
_OWN = {"host", "transfer-encoding", "content-length"}  # the forwarding client writes its own
Change = Callable[[Request, bytes], bytes]


@contextmanager
def changed_by(
    pipeline: Pipeline,
    change: Change,
    target: Callable[[str], str] = str,
    sent: Callable[[bytes], bytes] = bytes,
) -> Iterator[ScriptedServer]:
    """Let the pipeline talk to the local provider through a server that passes every answer to `change`, the target of
    every request to `target` and its body to `sent`."""
    behind = urlsplit(pipeline.simulator.base_url).netloc

    def script(request: Request) -> bytes:
        connection = http.client.HTTPConnection(behind, timeout=30)
        kept = {name: value for name, value in request.headers.items() if name not in _OWN}
        try:
            connection.request(request.method, target(request.target), sent(request.body), kept)
            reply = connection.getresponse()
            body = change(request, reply.read())
        finally:
            connection.close()
        kind = reply.headers.get("content-type", "application/json")
        return answer(body, f"{reply.status} {reply.reason}", kind)

    with ScriptedServer(script).running() as server:
        pipeline.base_url = server.base_url
        yield server


def with_members(**odd: Any) -> Change:
    """Every batch object that has ended carries these members, and every listing too."""

    def change(request: Request, body: bytes) -> bytes:
        if not request.target.startswith("/v1/batches"):
            return body
        told = json.loads(body)
        for one in told.get("data", [told]):
            if one.get("status") == "completed":
                one.update(odd)
        return json.dumps(told).replace(json.dumps(HUGE), "9" * 5000).encode()

    return change

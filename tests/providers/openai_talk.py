"""The OpenAI adapter talking to a scripted server."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from providers.scripted_server import Request, ScriptedServer, answer

from nightmill.domain.errors import NightmillError
from nightmill.providers.connection import ProviderConnection, RequestSpec
from nightmill.providers.openai_batch import OpenAIBatch

KEY = "sk-CANARY-key"
SPEC = RequestSpec(model="m")
ENDED = {"id": "batch_1", "object": "batch", "status": "completed", "input_file_id": "file-i", "created_at": 1740787200}
HTML = answer(b"<html>blocked</html>", content_type="text/html")


@contextmanager
def talking_to(script: Callable[[Request], bytes], **settings) -> Iterator[tuple[OpenAIBatch, ScriptedServer]]:
    with ScriptedServer(script).running() as server:
        connection = ProviderConnection("llm_night", server.base_url, KEY, **{"max_retries": 0, **settings})
        provider = OpenAIBatch(connection, SPEC)
        try:
            yield provider, server
        finally:
            provider.close()


def fault_from(call: Callable[[], object], kind: type[NightmillError]) -> NightmillError:
    with pytest.raises(kind) as caught:
        call()
    told = "".join(traceback.format_exception(caught.value))
    assert KEY not in told
    assert "CANARY" not in told
    return caught.value

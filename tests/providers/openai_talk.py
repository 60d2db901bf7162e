"""The OpenAI adapter talking to a scripted server."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from providers.scripted_server import Request, ScriptedServer, answer

from nightmill.domain.errors import NightmillError
from nightmill.domain.snapshots import Found, LookupResult
from nightmill.providers.answers import ResultLine, Said, Unreadable, Usage
from nightmill.providers.connection import ProviderConnection, RequestSpec
from nightmill.providers.dialects.openai_chat import OpenAIChat
from nightmill.providers.dialects.openai_embeddings import OpenAIEmbeddings
from nightmill.providers.openai import CAPABILITIES, CHAT, EMBEDDINGS, ENDPOINTS
from nightmill.providers.openai.envelope import unwrap
from nightmill.providers.openai.transport import OpenAIBatches
from nightmill.providers.port import SentCreate
from nightmill.providers.provider import read_lines

KEY = "sk-CANARY-key"
SPEC = RequestSpec("m", CHAT)
ENDED = {"id": "batch_1", "object": "batch", "status": "completed", "input_file_id": "file-i", "created_at": 1740787200}
HTML = answer(b"<html>blocked</html>", content_type="text/html")


@contextmanager
def talking_to(script: Callable[[Request], bytes], **settings) -> Iterator[tuple[OpenAIBatches, ScriptedServer]]:
    with ScriptedServer(script).running() as server:
        connection = ProviderConnection("llm_night", server.base_url, KEY, **{"max_retries": 0, **settings})
        provider = OpenAIBatches(connection, SPEC, ENDPOINTS[CHAT], CAPABILITIES)
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


def lookup(transport: OpenAIBatches, ref: str, token: str, since: datetime) -> LookupResult:
    return transport.lookup(SentCreate(token, since, 1, ref))


def download(transport: OpenAIBatches, ref: str, path: Path) -> int:
    """One result file to that path; its size."""
    (file,) = transport.results("batch_1", {"output": ref}, path.parent, path.name).files
    file.path.rename(path)
    return file.size


def lines_of(raw: Iterable[bytes], *, vectors: bool = False) -> list[ResultLine | Unreadable]:
    """What result lines of the Batch API say."""
    dialect = OpenAIEmbeddings(RequestSpec("m", EMBEDDINGS)) if vectors else OpenAIChat(SPEC)
    return list(read_lines(raw, unwrap, dialect.read))


def said_in(raw: bytes, *, vectors: bool = False) -> Said | Unreadable:
    """What one line says of its request."""
    (line,) = lines_of([raw], vectors=vectors)
    return line.said if isinstance(line, ResultLine) else line


def used(
    prompt: int | None = None,
    output: int | None = None,
    cached: int | None = None,
    written: int | None = None,
    reasoning: int | None = None,
) -> Usage:
    """Usage by the sum of the prompt, as most vendors tell it."""
    uncached = None if prompt is None else prompt - (cached or 0) - (written or 0)
    return Usage(uncached, output, cached, written, reasoning)


def found_ids(looked_up: LookupResult) -> list[str]:
    """Ids of the batches that a lookup found."""
    return [one.provider_id for one in (looked_up.snapshot, *looked_up.others)] if isinstance(looked_up, Found) else []

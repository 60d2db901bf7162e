"""Whether a server has a Batch API at all: many that speak OpenAI's API answer chats only.

Asked by listing files and batches. Where there is no such list, a call that no server can carry out (an upload without
a file, a batch without an input) tells a missing path from one that only does not list. Nothing is sent or bought.
"""

from __future__ import annotations

import httpx2
import openai

from nightmill.domain.errors import NightmillError
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.openai.client import open_client
from nightmill.providers.openai.faults import fault_of
from nightmill.providers.port import Routes

ROUTES = ("/files", "/batches")
_NOT_THERE = frozenset({404, 405, 501})


def batch_routes(connection: ProviderConnection) -> Routes:
    """Raises ProviderUnavailable or ProviderRefused where another answer than "no such path" comes."""
    client = open_client(connection, max_retries=0)
    missing: dict[str, int] = {}
    unlisted: dict[str, int] = {}
    try:
        for path in ROUTES:
            status = _asked(client, "GET", f"{path}?limit=1", connection)
            if status in _NOT_THERE:
                created = _asked(client, "POST", path, connection)
                (missing if created in _NOT_THERE else unlisted)[path] = status
    finally:
        client.close()
    return Routes(missing, unlisted)


def _asked(client: openai.OpenAI, method: str, path: str, connection: ProviderConnection) -> int:
    """The HTTP status; of a POST, any refusal counts as a path that is there."""
    fault: NightmillError
    try:
        if method == "GET":
            client.get(path, cast_to=httpx2.Response)
        else:
            client.post(path, cast_to=httpx2.Response, body={})
    except openai.APIStatusError as error:
        status = error.status_code
        if status in _NOT_THERE or (method == "POST" and status < 500):
            return status
        fault = fault_of(error, f"asking for {path.partition('?')[0]}", connection, lagging=False)
    except (openai.OpenAIError, httpx2.HTTPError) as error:
        fault = fault_of(error, f"asking for {path.partition('?')[0]}", connection, lagging=False)
    else:
        return 200
    raise fault

"""Reads a message batch's results: the whole stream to a file, or its first lines as a proof whose batch it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import anthropic
import httpx2

from nightmill.domain.errors import NightmillError
from nightmill.providers.answers import Unreadable
from nightmill.providers.anthropic.client import Clients
from nightmill.providers.anthropic.envelope import ID_KEY, unwrap
from nightmill.providers.anthropic.faults import fault_of
from nightmill.providers.cleaning import as_sent, json_value
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.download import Download
from nightmill.providers.http_guard import AS_FILE

_VERSION = "anthropic-version"
_PROOF_LINES, _PROOF_BYTES = 20, 4 << 20  # so much of the results is read to see whose they are


class ResultStream:
    """The results of one batch. Their address is made of its id: the one that the batch names could be anywhere, and
    the key would go there."""

    def __init__(self, clients: Clients, connection: ProviderConnection, provider_id: str) -> None:
        self._clients = clients
        self._connection = connection
        self._id = provider_id

    def fetch(self, path: Path) -> int:
        """All of it to a path, as `Download` does it; its size in bytes."""
        what = f"the results of batch {self._id}"
        return Download(self._connection, what, path, ID_KEY, self.open, anthropic.AnthropicError, self._fault).run()

    def is_of(self, token: str) -> bool | None:
        """Whether its lines carry our token; None where no line of its beginning can be read."""
        readable = False
        fault: NightmillError
        try:
            with self.open() as response:
                for line in _first_lines(response):
                    found = unwrap(line)
                    if not isinstance(found, Unreadable):
                        readable = True
                        if found[0].startswith(f"{token}-"):
                            return True
            return False if readable else None
        except (anthropic.AnthropicError, httpx2.HTTPError) as error:
            fault = self._fault(error)
        raise fault

    @contextmanager
    def open(self) -> Iterator[httpx2.Response]:
        """The answer, whose body is not read. Raises as the SDK does."""
        url = f"{str(self._clients.sdk.base_url).rstrip('/')}/v1/messages/batches/{quote(as_sent(self._id), safe='')}"
        headers = {"accept": AS_FILE, _VERSION: str(self._clients.sdk.default_headers[_VERSION])}
        with self._clients.http.stream("GET", f"{url}/results", headers=headers) as response:
            if response.is_error:
                raise _status_error(response)
            yield response

    def _fault(self, error: Exception) -> NightmillError:
        return fault_of(error, f"downloading the results of batch {self._id}", self._connection, lagging=True)


def _first_lines(response: httpx2.Response) -> Iterator[bytes]:
    """Whole lines from the beginning; at the stream's end also a last one without a line end."""
    held, taken, read = b"", 0, 0
    for piece in response.iter_bytes(1 << 16):
        *lines, held = (held + piece).split(b"\n")
        for line in lines:
            if line.strip():
                yield line
                taken += 1
        read += len(piece)
        if taken >= _PROOF_LINES or read >= _PROOF_BYTES:
            return
    if held.strip():
        yield held


def _status_error(response: httpx2.Response) -> anthropic.APIStatusError:
    content = response.read()
    try:
        body: object = json_value(content)
    except ValueError:
        body = content.decode("utf-8", "replace")
    return anthropic.APIStatusError(f"HTTP {response.status_code}", response=response, body=body)

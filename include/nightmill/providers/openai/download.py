"""Fetches one of OpenAI's result files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import openai

from nightmill.domain.errors import NightmillError
from nightmill.providers.cleaning import as_sent
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.download import Download, later
from nightmill.providers.json_answers import MalformedAnswerError, json_object
from nightmill.providers.openai.envelope import ID_KEY
from nightmill.providers.openai.faults import fault_of


@dataclass(frozen=True, slots=True)
class FileDownload:
    """One file to one path, as `Download` does it."""

    client: openai.OpenAI
    connection: ProviderConnection
    file_id: str
    path: Path
    attempts: int = 3
    pause_s: float = 0.5

    def run(self) -> int:
        """Bytes written. Raises as `Download.run`."""
        fetched = Download(
            self.connection,
            f"file {self.file_id}",
            self.path,
            ID_KEY,
            self._open,
            openai.OpenAIError,
            self._fault,
            self._stated_bytes(),
            self.attempts,
            self.pause_s,
        )
        return fetched.run()

    @contextmanager
    def _open(self) -> Iterator[httpx2.Response]:
        with self.client.files.with_streaming_response.content(as_sent(self.file_id)) as response:
            yield response.http_response

    def _fault(self, error: Exception) -> NightmillError:
        doing = f"downloading file {self.file_id}"
        if isinstance(error, openai.BadRequestError):
            # Some providers hand out ids that their own file API refuses for a while: the results are not lost.
            return later(f"refused {doing} (HTTP {error.status_code})", self.connection)
        return fault_of(error, doing, self.connection, lagging=True)

    def _stated_bytes(self) -> int | None:
        """The size in the file object, where there is a likely one. It is a second opinion: without it the rest still
        holds."""
        try:
            answer = self.client.files.with_raw_response.retrieve(as_sent(self.file_id))
            stated: Any = json_object(answer.http_response.content).get("bytes")
        except (openai.OpenAIError, httpx2.HTTPError, MalformedAnswerError):
            return None
        likely = type(stated) is int and 0 < stated <= self.connection.answers.max_result_bytes
        return stated if likely else None

"""Fetches a result file so that a cut transfer can never pass for a whole one."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import openai

from nightmill.domain.errors import NightmillError, ProviderUnavailable
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.openai_faults import fault_of, malformed
from nightmill.providers.openai_shapes import MalformedAnswerError, named_object
from nightmill.providers.result_files import ends_complete

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class FileDownload:
    """One file to one path: streamed to `path`.part, checked, synced, renamed. A cut starts over from zero.

    The SDK retries a streamed download only until the first byte; the rest is done here, `attempts` times in all.
    """

    client: openai.OpenAI
    connection: ProviderConnection
    file_id: str
    path: Path
    attempts: int = 3
    pause_s: float = 0.5

    def run(self) -> int:
        """Bytes written. Raises ProviderUnavailable when no attempt brought the whole file."""
        stated = self._stated_bytes()
        part = self.path.with_name(self.path.name + ".part")
        try:
            for attempt in range(1, self.attempts + 1):
                cut = self._attempt(part, stated)
                if cut is None:
                    return self._keep(part)
                if attempt < self.attempts:
                    time.sleep(self.pause_s * 2 ** (attempt - 1))
        finally:
            part.unlink(missing_ok=True)
        raise ProviderUnavailable(
            f"File {self.file_id} of connection {self.connection.conn_id!r} arrived incomplete {self.attempts} times "
            f"({cut}).",
            "It is tried again later; the work is done and paid for, so do not submit it again.",
        )

    def _attempt(self, part: Path, stated: int | None) -> str | None:
        """None when the whole file lies in `part`, else how it was cut. Raises the fault of a refused request."""
        doing = f"downloading file {self.file_id}"
        fault: NightmillError
        try:
            return self._stream(part) or _shortfall(part, stated)
        except openai.BadRequestError as error:
            # Some providers hand out ids that their own file API refuses for a while: the results are not lost.
            fault = ProviderUnavailable(
                f"Connection {self.connection.conn_id!r} refused {doing} (HTTP {error.status_code}).",
                "It is tried again later; fetch the file from the provider's console if it stays.",
            )
        except openai.OpenAIError as error:
            fault = fault_of(error, doing, self.connection, lagging=True)
        except httpx2.HTTPError as error:
            return type(error).__name__
        except MalformedAnswerError as error:
            fault = malformed(str(error), doing, self.connection)
        raise fault

    def _stream(self, part: Path) -> str | None:
        with (
            self.client.files.with_streaming_response.content(self.file_id) as response,
            part.open("wb") as sink,
        ):
            refuse_page = "html" in response.headers.get("content-type", "").casefold()
            for chunk in response.iter_bytes(_CHUNK):
                if refuse_page or (sink.tell() == 0 and chunk.lstrip()[:1] == b"<"):
                    raise MalformedAnswerError("HTML")
                sink.write(chunk)
            sink.flush()
            os.fsync(sink.fileno())
            announced = response.headers.get("content-length", "")
            received = response.http_response.num_bytes_downloaded
        if announced.isdigit() and received != int(announced):
            return f"{received} of {announced} bytes"
        return None

    def _stated_bytes(self) -> int | None:
        """The size in the file object, where there is one. It is a second opinion: without it the rest still holds."""
        try:
            answer = self.client.files.with_raw_response.retrieve(self.file_id)
            stated: Any = named_object(answer.http_response.content, "file").get("bytes")
        except (openai.OpenAIError, httpx2.HTTPError, MalformedAnswerError):
            return None
        return stated if isinstance(stated, int) and stated > 0 else None

    def _keep(self, part: Path) -> int:
        size = part.stat().st_size
        part.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return size


def _shortfall(part: Path, stated: int | None) -> str | None:
    """Less than the file object states, or a last line that stops in the middle. More is fine: gateways rewrite."""
    size = part.stat().st_size
    if stated is not None and size < stated:
        return f"{size} of {stated} bytes"
    if not ends_complete(part):
        return f"the last line stops in the middle, after {size} bytes"
    return None

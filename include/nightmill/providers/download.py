"""Fetches results so that a cut transfer can never pass for a whole one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from nightmill.domain.errors import NightmillError, ProviderUnavailable
from nightmill.providers.call_faults import malformed, too_large
from nightmill.providers.connection import LEAST_LINE_BYTES, ProviderConnection
from nightmill.providers.http_guard import (
    AS_FILE,
    AnswerError,
    Raises,
    RedirectedError,
    SlowAnswerError,
    TooLargeError,
    UnpackingError,
    hooks,
    settings,
)
from nightmill.providers.json_answers import MalformedAnswerError
from nightmill.providers.result_files import ends_complete, holds_no_line

_CHUNK = LEAST_LINE_BYTES  # so that a line which is too long shows at the ends of the pieces
_PLAIN = Raises(TooLargeError, UnpackingError, RedirectedError)  # where no SDK stands between


@dataclass(frozen=True, slots=True)
class Download:
    """One result to one path: streamed to `path`.part, checked, synced, renamed. A cut starts over from zero.

    An SDK retries a streamed download only until the first byte; the rest is done here, `attempts` times in all.
    `what` names it in messages ("file F"). `open` asks for it; `fault` is what that raised (`sdk_error`) as ours.
    `stated_bytes`: no less comes, as far as the provider says.
    """

    connection: ProviderConnection
    what: str
    path: Path
    id_key: str
    open: Callable[[], AbstractContextManager[httpx2.Response]]
    sdk_error: type[Exception]
    fault: Callable[[Exception], NightmillError]
    stated_bytes: int | None = None
    attempts: int = 3
    pause_s: float = 0.5

    def run(self) -> int:
        """Bytes written. Raises ProviderUnavailable when no attempt brought the whole of it, AnswerTooLarge when it is
        larger than the connection allows."""
        part = self.path.with_name(self.path.name + ".part")
        try:
            for attempt in range(1, self.attempts + 1):
                cut = self._attempt(part)
                if cut is None:
                    return self._keep(part)
                if attempt < self.attempts:
                    time.sleep(self.pause_s * 2 ** (attempt - 1))
        finally:
            part.unlink(missing_ok=True)
        raise ProviderUnavailable(
            f"{self.what[0].upper()}{self.what[1:]} of connection {self.connection.conn_id!r} arrived incomplete "
            f"{self.attempts} times ({cut}).",
            "It is tried again later; the work is done and paid for, so do not submit it again.",
        )

    def _attempt(self, part: Path) -> str | None:
        """None when the whole of it lies in `part`, else how it was cut. Raises the fault of a refused request."""
        doing = f"downloading {self.what}"
        fault: NightmillError
        try:
            cut = self._fetch(part) or _shortfall(part, self.stated_bytes)
            if cut is None and holds_no_line(part, self.id_key):
                raise MalformedAnswerError("no result lines, but a message such as an error")
            return cut
        except _StorageRefusedError as error:
            fault = later(f"redirected {doing}, and the storage there answered HTTP {error.status}", self.connection)
        except SlowAnswerError as error:
            fault = later(f"is too slow while {doing} ({error})", self.connection)
        except LongLineError:
            fault = too_large("max_line_bytes", self.connection.answers.max_line_bytes, doing, self.connection)
        except (self.sdk_error, AnswerError) as error:
            fault = self.fault(error)
        except httpx2.HTTPError as error:
            return type(error).__name__
        except MalformedAnswerError as error:
            fault = malformed(str(error), doing, self.connection)
        raise fault

    def _fetch(self, part: Path) -> str | None:
        try:
            with self.open() as response:
                return self._stream(response, part)
        except RedirectedError as error:
            if not may_follow(error.target, self.connection):
                raise
            hop = error
        assert hop.target is not None
        return self._from_storage(hop.target, part)

    def _from_storage(self, target: httpx2.URL, part: Path) -> str | None:
        """Fetch what a provider keeps at another host, as behind a signed URL: one hop, without the key, organisation,
        project or cookies of the connection."""
        shared = settings(self.connection, target)
        with (
            httpx2.Client(**shared, event_hooks=hooks(self.connection, _PLAIN), follow_redirects=True) as client,
            client.stream("GET", target, headers={"accept": AS_FILE}) as response,
        ):
            if response.status_code != 200:
                raise _StorageRefusedError(response.status_code)
            return self._stream(response, part)

    def _stream(self, response: httpx2.Response, part: Path) -> str | None:
        with part.open("wb") as sink:
            refuse_page = "html" in response.headers.get("content-type", "").casefold()
            line = _OpenLine(self.connection.answers.max_line_bytes)
            for chunk in response.iter_bytes(_CHUNK):
                if refuse_page or (sink.tell() == 0 and chunk.lstrip()[:1] == b"<"):
                    raise MalformedAnswerError("HTML")
                line.add(chunk)
                sink.write(chunk)
            sink.flush()
            os.fsync(sink.fileno())
            announced = response.headers.get("content-length", "")
            received = response.num_bytes_downloaded
        if announced.isdigit() and received != int(announced):
            return f"{received} of {announced} bytes"
        return None

    def _keep(self, part: Path) -> int:
        size = part.stat().st_size
        part.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return size


def may_follow(target: httpx2.URL | None, connection: ProviderConnection) -> bool:
    """Whether a redirect to another host is taken: to storage that needs no key of ours, and never from https to
    http."""
    if target is None or target.userinfo:
        return False
    safe = target.scheme == "https" or connection.base_url.startswith("http:")
    return safe and connection.may_be_called(target.scheme, target.host)


def later(why: str, connection: ProviderConnection) -> ProviderUnavailable:
    """The fault for results that are there and cannot be had just now."""
    return ProviderUnavailable(
        f"Connection {connection.conn_id!r} {why}.",
        "It is tried again later; fetch the file from the provider's console if it stays.",
    )


class LongLineError(Exception):
    """A line that is longer than the connection allows."""


class _StorageRefusedError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(slots=True)
class _OpenLine:
    """How long the line is that the last piece did not end. A line within one piece is shorter than any limit."""

    most: int
    size: int = 0

    def add(self, piece: bytes) -> None:
        end = piece.find(b"\n")
        self.size += len(piece) if end < 0 else end
        if self.size > self.most:
            raise LongLineError
        if end >= 0:
            self.size = len(piece) - piece.rfind(b"\n") - 1


def _shortfall(part: Path, stated: int | None) -> str | None:
    """Less than the file object states, or a last line that stops in the middle. More is fine: gateways rewrite."""
    size = part.stat().st_size
    if stated is not None and size < stated:
        return f"{size} of {stated} bytes"
    if not ends_complete(part):
        return f"the last line stops in the middle, after {size} bytes"
    return None

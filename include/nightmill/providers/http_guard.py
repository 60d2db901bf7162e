"""What every HTTP answer passes before a vendor's SDK sees it: no redirect that carries documents along, no answer
without an end, no compressed one that unpacks to more than it should.

The hooks work on the public parts of `httpx2` and serve synchronous and asynchronous clients alike. A vendor gives them
faults of its SDK's own base class (`Raises`), because an SDK passes those on as they are and does not ask again.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import httpx2

from nightmill.providers.cleaning import word
from nightmill.providers.connection import AnswerLimits, ProviderConnection, is_loopback

HEADERS = {"accept-encoding": "identity"}
AS_FILE = "application/binary"  # what the SDK accepts for a file's content; everything else is JSON
ERROR_BYTES = 64 * 1024  # of the body of an error; the rest is left unread
LEAST_BYTES_PER_S = 10_000  # a line of 80 kbit/s; slower answers are given up
MOST_S = 2 * 3600.0  # for one answer, at any pace
MOST_HOPS = 5
_PLAIN_BYTES, _MOST_TIMES_LARGER = 64 << 20, 200  # unpacked: JSON rarely shrinks to less than a fiftieth
_ENCODINGS = frozenset({"identity", "gzip", "deflate"})


class AnswerError(Exception):
    """An answer that is not taken. Its text is ours: it names hosts and sizes, and quotes nothing."""


class TooLargeError(AnswerError):
    """More than the limit `key` of the connection allows."""

    def __init__(self, key: str, most: int) -> None:
        super().__init__(f"more than {most:,} bytes")
        self.key, self.most = key, most


class UnpackingError(AnswerError):
    """A compressed answer: in a way that was not asked for, or one that unpacks to far more than it is."""


class RedirectedError(AnswerError):
    """A redirect that is not followed. `target` can be a signed URL: a secret that must not be shown."""

    def __init__(self, method: str, status: int, target: httpx2.URL | None) -> None:
        where = shown_host(target) if target else "an address that cannot be read"
        super().__init__(f"a redirect (HTTP {status}) to {where}")
        self.method, self.status, self.target = method, status, target


@dataclass(frozen=True, slots=True)
class Raises:
    """The faults as one vendor's SDK passes them on: classes that are also its own errors."""

    too_large: type[TooLargeError]
    unpacking: type[UnpackingError]
    redirected: type[RedirectedError]


class SlowAnswerError(httpx2.ReadTimeout):
    """An answer that arrives too slowly to wait for its end."""


def settings(connection: ProviderConnection, url: httpx2.URL) -> dict[str, Any]:
    """Arguments for a client of either kind that calls `url`, without the hooks. On this machine: no proxy of the
    environment; and no certificates where plain HTTP needs none: loading them costs 40 ms."""
    shared: dict[str, Any] = {"headers": HEADERS, "timeout": connection.timeout_s, "max_redirects": MOST_HOPS}
    if is_loopback(url.host):
        # A context of ours for TLS: with trust_env off, SSL_CERT_FILE would not be read.
        shared |= {"trust_env": False, "verify": ssl.create_default_context() if url.scheme == "https" else False}
    return shared


def hooks(connection: ProviderConnection, raises: Raises) -> dict[str, list[Callable[..., Any]]]:
    """For `event_hooks` of a synchronous client."""

    def look(response: httpx2.Response) -> None:
        _look(response, connection, raises)

    return {"response": [look]}


def async_hooks(connection: ProviderConnection, raises: Raises) -> dict[str, list[Callable[..., Any]]]:
    """For `event_hooks` of an asynchronous client."""

    async def look(response: httpx2.Response) -> None:
        _look(response, connection, raises)

    return {"response": [look]}


def shown_host(url: httpx2.URL) -> str:
    """Scheme, host and port, without what may be secret."""
    return word(f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}") or "nowhere"


def _look(response: httpx2.Response, connection: ProviderConnection, raises: Raises) -> None:
    encodings = {one.strip().lower() for one in response.headers.get("content-encoding", "identity").split(",")}
    if encodings - _ENCODINGS and not response.is_error:
        raise raises.unpacking("an encoding that was not asked for and is not known here")
    _bound(response, connection.answers, connection.timeout_s, raises)
    if encodings != {"identity"}:
        del response.headers["content-encoding"]
        response.headers.pop("content-length", None)  # it counts what was packed
    response.encoding = "utf-8"  # a charset of the server's choice can be slow, or unpack
    if response.has_redirect_location:
        _refuse_redirect(response, raises)


def _refuse_redirect(response: httpx2.Response, raises: Raises) -> None:
    """Only a GET is followed, and only to the same scheme, host and port: what else carries the key or a body along."""
    try:
        target: httpx2.URL | None = response.url.join(response.headers["location"])
    except (httpx2.InvalidURL, ValueError):
        target = None
    same = target is not None and _origin(target) == _origin(response.url) and not target.userinfo
    if response.request.method != "GET" or not same:
        raise raises.redirected(response.request.method, response.status_code, target)


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _bound(response: httpx2.Response, limits: AnswerLimits, timeout_s: float, raises: Raises) -> None:
    """Put a meter between the socket and whoever reads the body; what they get is unpacked already."""
    if response.is_error:
        meter = _Meter(None, ERROR_BYTES, timeout_s, raises)
    elif response.request.headers.get("accept") == AS_FILE:
        meter = _Meter("max_result_bytes", limits.max_result_bytes, timeout_s, raises)
    else:
        meter = _Meter("max_answer_bytes", limits.max_answer_bytes, timeout_s, raises)
    meter.announced(response.headers.get("content-length", ""))
    if isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _Unpacked(_packed(response, _Received(response.stream, meter)), meter)
    else:
        response.stream = _AsyncUnpacked(_packed(response, _AsyncReceived(response.stream, meter)), meter)


def _packed(response: httpx2.Response, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream) -> httpx2.Response:
    """The answer as it came, for its unpacking."""
    return httpx2.Response(response.status_code, headers=response.headers.raw, stream=stream, request=response.request)


@dataclass(slots=True)
class _Meter:
    """Counts one body. `key` is the limit's name; None for the body of an error, which is cut instead of refused."""

    key: str | None
    most: int
    grace_s: float
    raises: Raises
    _came: int = 0
    _unpacked: int = 0
    _since: float = field(default_factory=time.monotonic)

    def announced(self, length: str) -> None:
        if self.key and length.isdigit() and int(length[:19]) > self.most:
            raise self.raises.too_large(self.key, self.most)

    def received(self, size: int) -> None:
        self._came += size
        waited = time.monotonic() - self._since
        if waited > min(self.grace_s + self._came / LEAST_BYTES_PER_S, MOST_S):
            raise SlowAnswerError(f"{self._came:,} bytes in {waited:.0f} s")

    def room(self, size: int) -> int:
        """How much of the next unpacked piece is taken."""
        left = self.most - self._unpacked
        self._unpacked += size
        if self.key and size > left:
            raise self.raises.too_large(self.key, self.most)
        if self._unpacked > _PLAIN_BYTES + _MOST_TIMES_LARGER * self._came:
            raise self.raises.unpacking(f"{self._came:,} bytes that unpack to more than {self._unpacked - size:,}")
        return left


class _Received(httpx2.SyncByteStream):
    def __init__(self, raw: httpx2.SyncByteStream, meter: _Meter) -> None:
        self._raw, self._meter = raw, meter

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._raw:
            self._meter.received(len(piece))
            yield piece

    def close(self) -> None:
        self._raw.close()


class _Unpacked(httpx2.SyncByteStream):
    def __init__(self, packed: httpx2.Response, meter: _Meter) -> None:
        self._packed, self._meter = packed, meter

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._packed.iter_bytes():  # at most 1 MiB each, however well it was packed
            room = self._meter.room(len(piece))
            yield piece[:room]
            if room < len(piece):
                return

    def close(self) -> None:
        self._packed.close()


class _AsyncReceived(httpx2.AsyncByteStream):
    def __init__(self, raw: httpx2.AsyncByteStream, meter: _Meter) -> None:
        self._raw, self._meter = raw, meter

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._raw:
            self._meter.received(len(piece))
            yield piece

    async def aclose(self) -> None:
        await self._raw.aclose()


class _AsyncUnpacked(httpx2.AsyncByteStream):
    def __init__(self, packed: httpx2.Response, meter: _Meter) -> None:
        self._packed, self._meter = packed, meter

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self._packed.aiter_bytes()) as pieces:
            async for piece in pieces:
                room = self._meter.room(len(piece))
                yield piece[:room]
                if room < len(piece):
                    return

    async def aclose(self) -> None:
        await self._packed.aclose()


def _shown(record: logging.LogRecord) -> bool:
    """The client logs each call with its whole URL and the server's reason phrase: a signed URL is a secret, and the
    phrase can hold anything."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            one.copy_with(query=None) if isinstance(one, httpx2.URL) else word(one) if isinstance(one, str) else one
            for one in record.args
        )
    return True


logging.getLogger("httpx2").addFilter(_shown)

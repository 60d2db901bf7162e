"""A raw HTTP server that says exactly what a test tells it to, broken answers included."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


def answer(body: object, status: str = "200 OK", content_type: str = "application/json", **headers: str) -> bytes:
    """A whole, honest HTTP answer. `retry_after="3"` becomes the header `retry-after: 3`."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}", f"content-length: {len(data)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def error(status: str, code: str | None, message: str = "no", **headers: str) -> bytes:
    return answer({"error": {"message": message, "type": "some_type", "code": code}}, status, **headers)


def cut(body: bytes, length: int | None, content_type: str = "application/octet-stream") -> bytes:
    """An answer that announces `length` bytes (None: does not say) and closes after `body`."""
    announced = "" if length is None else f"content-length: {length}\r\n"
    return f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n{announced}connection: close\r\n\r\n".encode() + body


DROPPED = b""  # accepts the request and closes without an answer


@dataclass
class ScriptedServer:
    """Answers each request with what `script` returns, one connection each. Pieces are sent one by one, until the
    client has had enough: `sent` counts their bytes."""

    script: Callable[[Request], bytes | Iterable[bytes]]
    requests: list[Request] = field(default_factory=list)
    port: int = 0
    host: str = "127.0.0.1"
    sent: int = 0
    tls: ssl.SSLContext | None = None

    @property
    def base_url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.tls else ''}://{host}:{self.port}/v1"

    def paths(self) -> list[str]:
        return [f"{request.method} {request.target.partition('?')[0]}" for request in self.requests]

    @contextmanager
    def running(self) -> Iterator[ScriptedServer]:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        with socket.create_server((self.host, 0), family=family) as listener:
            self.port = listener.getsockname()[1]
            thread = threading.Thread(target=self._serve, args=(listener,), daemon=True)
            thread.start()
            yield self
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
                if self.tls is not None:
                    connection = self.tls.wrap_socket(connection, server_side=True)
            except ssl.SSLError:  # the client does not trust it
                continue
            except OSError:
                return
            with suppress(OSError), connection, connection.makefile("rb") as reader:  # the client may go away
                request = _read(reader)
                if request is not None:
                    self.requests.append(request)
                    said = self.script(request)
                    for piece in [said] if isinstance(said, bytes) else said:
                        connection.sendall(piece)
                        self.sent += len(piece)


def _read(reader) -> Request | None:
    if reader.peek(1)[:1] == b"\x16":  # a TLS greeting: it holds any bytes, line ends or none
        return None
    first = reader.readline().decode("latin-1").split()
    if len(first) != 3:
        return None
    headers = {}
    while (line := reader.readline().strip()) != b"":
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(reader.readline(), 16):
            body += reader.read(size)
            reader.readline()
        reader.readline()
    else:
        body = reader.read(int(headers.get("content-length", 0)))
    return Request(first[0], first[1], headers, body)

"""The post office: a little server of its own, with books of what it answered."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Office:
    """`loses_replies`: so many create calls are taken and not answered. `mislays`: words of slips that are mislaid
    once. `clumsy`: words of slips whose first answer is no JSON."""

    loses_replies: int = 0
    mislays: set[str] = field(default_factory=set)
    clumsy: set[str] = field(default_factory=set)
    parcels: dict[str, dict[str, Any]] = field(default_factory=dict)
    answered: Counter[str] = field(default_factory=Counter)
    asked: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/office"

    def take(self, label: str, slips: list[dict[str, Any]]) -> dict[str, Any]:
        name = f"parcel-{len(self.parcels) + 1}"
        replies = [self._reply(one) for one in slips]
        self.parcels[name] = {
            "parcel": name, "label": label, "state": "delivered", "slips": len(slips), "done": len(slips),
            "answered": sum("reply" in one for one in replies), "made_at": datetime.now(UTC).isoformat(),
            "replies": replies,
        }  # fmt: skip
        return self.shown(name)

    def shown(self, name: str) -> dict[str, Any]:
        return {key: value for key, value in self.parcels[name].items() if key != "replies"}

    def _reply(self, one: dict[str, Any]) -> dict[str, Any]:
        text = one["slip"]["say"]
        self.asked.append(text)
        mislaid = next((words for words in self.mislays if words in text), None)
        if mislaid is not None:
            self.mislays.discard(mislaid)
            return {"no": one["no"], "trouble": {"word": "mislaid", "text": "it fell behind the desk"}}
        return {"no": one["no"], "reply": self.answer(text)}

    def answer(self, text: str) -> dict[str, Any]:
        number = re.search(r"number (\d+)", text)
        said = json.dumps({"title": f"Note {number[1] if number else '?'}", "pages": int(number[1]) if number else 0})
        clumsy = next((words for words in self.clumsy if words in text), None)
        if clumsy is not None:
            self.clumsy.discard(clumsy)
            said = "Gladly! Here it is."
        self.answered[number[1] if number else text] += 1
        return {"said": said, "why": "done", "counted": {"read": 9, "known": 3, "wrote": 4}}


def _handler(office: Office) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

        def do_POST(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"null")
            if self.path == "/parcels":
                shown = office.take(told["label"], told["slips"])
                if office.loses_replies:
                    office.loses_replies -= 1
                    self.close_connection = True
                    return
                self._say(shown)
            elif self.path == "/desk":
                self._say(office.answer(told["say"]))
            else:
                self._say(office.shown(self.path.split("/")[2]))  # it is delivered already

        def do_GET(self) -> None:
            parts = self.path.split("/")[2:]
            if not parts:
                self._say({"parcels": [office.shown(name) for name in office.parcels]})
            elif parts[0] not in office.parcels:
                self._send(404, b"{}")
            elif parts[1:] == ["replies"]:
                lines = (json.dumps(one).encode() + b"\n" for one in office.parcels[parts[0]]["replies"])
                self._send(200, b"".join(lines))
            else:
                self._say(office.shown(parts[0]))

        def _say(self, value: object) -> None:
            self._send(200, json.dumps(value).encode())

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


@contextmanager
def opened(**settings: Any) -> Iterator[Office]:
    """A post office on a free port of this machine."""
    office = Office(**settings)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(office))
    office.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield office
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)

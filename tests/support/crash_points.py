"""Finds the points of a stage at which a crash could leave something half done, while the stage runs.

Three doors are watched, and through them everything goes that outlives a process: transactions that end having
written something, calls to the provider, and writes of the payload store. Nobody keeps a list of places: a stage that
learns a new step gets new points.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from psycopg.pq import TransactionStatus

import nightmill
from nightmill.storage.payloads import PayloadStore

PRODUCT = Path(nightmill.__file__).parent
STAGES = PRODUCT / "stages"
_ID = re.compile(r"\b(file|batch|msgbatch)[-_]\w+")
OnPoint = Callable[[str, str], None]


def watch(on_point: OnPoint) -> None:
    """Call `on_point(name, moment)` before and after each point. A name is unique: what, where from, which time."""
    times: Counter[str] = Counter()

    def around(owner: type, method: str, what: Callable[..., str | None]) -> None:
        real = getattr(owner, method)

        def watched(self: Any, *arguments: Any, **named: Any) -> Any:
            kind = what(self, *arguments, **named)
            if kind is None:
                return real(self, *arguments, **named)
            place = f"{kind} in {_place()}"
            times[place] += 1
            name = f"{place} #{times[place]}"
            on_point(name, "before")
            made = real(self, *arguments, **named)
            on_point(name, "after")
            return made

        setattr(owner, method, watched)

    around(psycopg.Connection, "commit", _transaction)
    around(psycopg.Transaction, "__exit__", lambda block, *_: _transaction(block.connection))
    around(httpx2.HTTPTransport, "handle_request", _call)
    for method in ("write", "keep_file", "delete", "delete_folder"):
        around(PayloadStore, method, lambda *_, method=method: f"store {method}")


def _transaction(conn: psycopg.Connection[Any]) -> str | None:
    """None unless the transaction wrote something: before and after a commit of nothing are the same."""
    if conn.info.transaction_status is not TransactionStatus.INTRANS:
        return None
    wrote = psycopg.Cursor(conn).execute("select pg_current_xact_id_if_assigned() is not null").fetchone()
    return "commit" if wrote == (True,) else None


def _call(_: httpx2.HTTPTransport, request: httpx2.Request) -> str:
    return f"{request.method} {_ID.sub('{id}', request.url.path)}"


def _place() -> str:
    """The innermost function of a stage that asked for it, else the innermost one of nightmill."""
    frame, innermost = sys._getframe(1), None
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(STAGES):
            return _named(path, frame.f_code.co_name)
        if innermost is None and path.is_relative_to(PRODUCT):
            innermost = _named(path, frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return innermost or "a test"


def _named(path: Path, function: str) -> str:
    return f"{'.'.join(path.relative_to(PRODUCT).with_suffix('').parts)}.{function}"

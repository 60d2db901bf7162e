"""What goes wrong: faults that are drawn per line and call, and strikes that a run meets at random times."""

from __future__ import annotations

import json
import random
import time
import urllib.request
from itertools import accumulate
from typing import Any

from support.forced import fault_log

from dev.practice_provider.server import RunningSimulator

STRIKES = (
    "drop_create_reply",
    "fail_create_after_accept",
    "expire_next",
    "cut_content",
    "cut_content_unannounced",
    "hide_files",
)
# A file that is cut at each look at the end of a line, by a server that names no length, cannot be told from one that
# lost these lines. So the next such cut comes when nobody can still be at the look after the last one.
BETWEEN_SILENT_CUTS_S = 3.0


def plan(seed: int) -> dict[str, Any]:
    """The fault plan at the start of a run. Faults with seeds of their own may strike one item one after the other.

    Each strike stands in it once, so that none is left out however short the run is.
    """
    return {
        "line_error": [
            {"rate": 0.20, "seed": seed + 1, "status": 500},
            {
                "rate": 0.01,
                "seed": seed + 2,
                "times": None,
                "status": 400,
                "type": "invalid_request_error",
                "code": "invalid_value",
                "message": "The request was refused.",
            },
        ],
        "answer": [
            {"kind": "lost", "rate": 0.05, "seed": seed + 3},
            *_side_by_side({"truncated": 0.04, "prose": 0.03, "wrong_type": 0.03}, seed + 4),
            *_side_by_side({"filtered": 0.01, "prose": 0.01}, seed + 5, times=None),
            {"kind": "doubled", "rate": 0.05, "seed": seed + 6},
            {"kind": "fenced", "rate": 0.05, "seed": seed + 7},
        ],
        "call": [
            _calls("GET /v1/batches/{batch_id}", 0.10, seed + 11, status=503),
            _calls("GET /v1/batches/{batch_id}", 0.05, seed + 12, status=None),
            _calls("GET /v1/batches", 0.10, seed + 13, status=500),
            _calls("GET /v1/files/{file_id}/content", 0.10, seed + 14, status=502),
            _calls("GET /v1/files/{file_id}/content", 0.05, seed + 15, status=200, html=True),
            _calls("POST /v1/files", 0.10, seed + 16, status=500),
            _calls("POST /v1/batches", 0.05, seed + 17, status=503),
            _calls("GET /v1/messages/batches/{batch_id}", 0.10, seed + 11, status=503),
            _calls("GET /v1/messages/batches/{batch_id}", 0.05, seed + 12, status=404),
            _calls("GET /v1/messages/batches", 0.10, seed + 13, status=500),
            _calls("GET /v1/messages/batches/{batch_id}/results", 0.10, seed + 14, status=502),
            _calls("GET /v1/messages/batches/{batch_id}/results", 0.05, seed + 15, status=200, html=True),
            _calls("POST /v1/messages/batches", 0.05, seed + 17, status=529),
        ],
        **dict.fromkeys(STRIKES, 1),
    }


class Storm:
    """Strikes at random times: whole batches expire, create replies get lost, downloads break."""

    def __init__(self, simulator: RunningSimulator, seed: int, every_s: float) -> None:
        self._simulator = simulator
        self._random = random.Random(f"storm {seed}")
        self._every_s = every_s
        self._next = time.monotonic() + every_s
        self._silent_cuts, self._silent_since = 0, time.monotonic()

    def blow(self) -> None:
        """Strike if it is time to."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._random.uniform(0, 2 * self._every_s)
        strike = self._random.choice(STRIKES)
        if strike != "cut_content_unannounced" or self._silence_over(now):
            _patch(self._simulator, {strike: 1})

    def _silence_over(self, now: float) -> bool:
        cuts = len(fault_log(self._simulator, "cut_content_unannounced"))
        if cuts > self._silent_cuts:
            self._silent_cuts, self._silent_since = cuts, now
        return now > self._silent_since + BETWEEN_SILENT_CUTS_S


def _side_by_side(rates: dict[str, float], seed: int, **more: Any) -> list[dict[str, Any]]:
    """Kinds of answers of which an item meets one at most."""
    starts = accumulate(rates.values(), initial=0.0)
    return [
        {"kind": kind, "rate": rate, "start": start, "seed": seed, **more}
        for (kind, rate), start in zip(rates.items(), starts, strict=False)
    ]


def _calls(route: str, rate: float, seed: int, **more: Any) -> dict[str, Any]:
    return {"route": route, "rate": rate, "seed": seed, "times": None, **more}


def _patch(simulator: RunningSimulator, changes: dict[str, Any]) -> None:
    request = urllib.request.Request(
        f"{simulator.control_url}/_faults",
        json.dumps(changes).encode(),
        {"content-type": "application/json"},
        method="PATCH",
    )
    urllib.request.urlopen(request, timeout=30).close()

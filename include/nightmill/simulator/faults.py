"""Faults that the simulator injects on request, each of them logged.

A plan is a frozen value; POST /_faults replaces it, PATCH /_faults changes single fields. Counters ("the next N")
count down in the stored plan, so that a restarted simulator goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from nightmill.simulator.ledger import Ledger


class LineError(BaseModel):
    """A line that fails. Chosen by `match` (a regular expression searched in its custom_id), by `rate` (a share of
    all bodies, the same ones for the same seed whatever their custom_ids), or both; a fault with neither hits all.

    `status` None makes a line without a response ({"response": null, "error": {...}}). `times`: how many executions
    of one body fail before it succeeds; None = always.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    match: str | None = None
    rate: float | None = Field(default=None, ge=0, le=1)
    seed: int = 0
    status: int | None = Field(default=500, ge=400, le=599)
    type: str = "server_error"
    code: str = "server_error"
    message: str = "The server had an error while processing your request."
    times: int | None = Field(default=1, ge=1)

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    def hits(self, custom_id: str, body_sha256: str) -> bool:
        if self.match is not None and not re.search(self.match, custom_id):
            return False
        if self.rate is None:
            return True
        draw = hashlib.sha256(f"{self.seed}:{body_sha256}".encode()).digest()
        return int.from_bytes(draw[:8], "big") < self.rate * 2**64


class FaultPlan(BaseModel):
    """What goes wrong. Delays come after the work is done and before the answer leaves, except for
    `content_delay_s`, which comes before the first byte. The chunk is the unit of `slow_content_ms`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    drop_create_reply: int = Field(default=0, ge=0)  # the next N creates: accepted, connection closed, no answer
    fail_create_after_accept: int = Field(default=0, ge=0)  # the next N creates: accepted, answered 500
    line_error: tuple[LineError, ...] = ()
    hold: bool = False  # batches stay in_progress until this is false again
    hold_after: int | None = Field(default=None, ge=0)  # while held, execute at most this many lines of each batch
    create_delay_s: float = Field(default=0, ge=0)
    upload_delay_s: float = Field(default=0, ge=0)
    content_delay_s: float = Field(default=0, ge=0)
    slow_content_ms: float = Field(default=0, ge=0)
    content_chunk_bytes: int = Field(default=64 * 1024, gt=0)

    @field_validator("line_error", mode="before")
    @classmethod
    def _one_is_a_list_of_one(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value


@dataclass(frozen=True, slots=True)
class LineFaultHit:
    fault: LineError
    custom_id: str
    body_sha256: str


class FaultBoard:
    """The plan in force and the log of what it did."""

    def __init__(self, ledger: Ledger, given: str | None) -> None:
        self._ledger = ledger
        if given is not None and self._setting("faults_given") != given:
            self.replace(FaultPlan.model_validate_json(given))
            self._keep("faults_given", given)
        self.plan = FaultPlan.model_validate_json(self._setting("faults") or "{}")

    def replace(self, plan: FaultPlan) -> None:
        with self._ledger.transaction():
            self._keep("faults", plan.model_dump_json())
            self.plan = plan

    def take(self, counter: Literal["drop_create_reply", "fail_create_after_accept"], detail: Any, now: float) -> bool:
        """Use up one of "the next N"; False when there is none left."""
        with self._ledger.transaction() as connection:
            left: int = getattr(self.plan, counter)
            if left == 0:
                return False
            plan = self.plan.model_copy(update={counter: left - 1})
            self._keep("faults", plan.model_dump_json())
            log(connection, now, counter, detail)
            self.plan = plan
            return True

    def note(self, fault: str, detail: Any, now: float) -> None:
        with self._ledger.transaction() as connection:
            log(connection, now, fault, detail)

    def times_failed(self, fault: LineError, body_sha256: str) -> int:
        row = self._ledger.row(
            "select times from line_fault where fault = ? and body_sha256 = ?", (fault.key, body_sha256)
        )
        return 0 if row is None else int(row["times"])

    def entries(self) -> list[dict[str, Any]]:
        rows = self._ledger.rows("select at, fault, detail from fault_log order by seq")
        return [{"at": row["at"], "fault": row["fault"], "detail": json.loads(row["detail"])} for row in rows]

    def _setting(self, name: str) -> str | None:
        row = self._ledger.row("select value from setting where name = ?", (name,))
        return None if row is None else str(row["value"])

    def _keep(self, name: str, value: str) -> None:
        self._ledger.execute("insert or replace into setting (name, value) values (?, ?)", (name, value))


def log(connection: sqlite3.Connection, now: float, fault: str, detail: Any) -> None:
    connection.execute("insert into fault_log (at, fault, detail) values (?, ?, ?)", (now, fault, json.dumps(detail)))


def record_line_faults(connection: sqlite3.Connection, now: float, batch_id: str, hits: Sequence[LineFaultHit]) -> None:
    """Count and log line faults inside the transaction that commits their lines."""
    connection.executemany(
        "insert into line_fault (fault, body_sha256, times) values (?, ?, 1)"
        " on conflict (fault, body_sha256) do update set times = times + 1",
        [(hit.fault.key, hit.body_sha256) for hit in hits],
    )
    connection.executemany(
        "insert into fault_log (at, fault, detail) values (?, 'line_error', ?)",
        [(now, json.dumps({"batch": batch_id, "custom_id": hit.custom_id, "code": hit.fault.code})) for hit in hits],
    )

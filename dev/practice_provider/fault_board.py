"""The fault plan in force, and the log of what it did.

Every entry of the log about a line holds its `batch` and `custom_id`, and `executed`: whether the request was executed
and paid for before the fault struck. A test so compares what happened with what was forced, id by id.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dev.practice_provider.faults import CallFault, Fault, FaultPlan, FileRefusal, LineError, OddAnswer
from dev.practice_provider.ledger import Ledger
from dev.practice_provider.odd_answers import SPOILING

Counter = Literal[
    "drop_create_reply",
    "fail_create_after_accept",
    "hide_files",
    "hide_counts",
    "cut_content",
    "cut_content_unannounced",
]
_ANY_FILE, _CALLS_SEEN, _CALLS_STRUCK = "file", "calls seen", "calls struck"


@dataclass(frozen=True, slots=True)
class LineFaultHit:
    fault: LineError | OddAnswer
    custom_id: str
    request_sha256: str

    def entry(self, batch_id: str) -> tuple[str, dict[str, Any]]:
        """The log entry: its name and detail. `spoilt`: the answer is paid for and cannot be used."""
        detail: dict[str, Any] = {"batch": batch_id, "custom_id": self.custom_id}
        if isinstance(self.fault, LineError):
            return "line_error", detail | {"code": self.fault.code, "executed": False}
        kind = self.fault.kind
        return "answer", detail | {"kind": kind.value, "executed": True, "spoilt": kind in SPOILING}


class FaultBoard:
    """The plan in force and the log of what it did."""

    def __init__(self, ledger: Ledger, given: str | None) -> None:
        self._ledger = ledger
        if given is not None and self._setting("faults_given") != given:
            self.replace(FaultPlan.model_validate_json(given))
            self._keep("faults_given", given)
        self.plan = FaultPlan.model_validate_json(self._setting("faults") or "{}")
        self._stops = {row["batch_id"]: row["stop_at"] for row in ledger.rows("select * from batch_stop")}

    def replace(self, plan: FaultPlan) -> None:
        with self._ledger.transaction():
            self._keep("faults", plan.model_dump_json())
            self.plan = plan

    def take(self, counter: Counter, detail: Any, now: float) -> bool:
        """Use up one of "the next N"; False when there is none left."""
        if getattr(self.plan, counter) == 0:
            return False
        with self._ledger.transaction() as connection:
            if not self._count_down(counter):
                return False
            log(connection, now, counter, detail)
            return True

    def take_expiry(self, batch_id: str, total: int) -> None:
        """Let a batch that was accepted just now expire half-way, if the plan says so of the next one."""
        if self.plan.expire_next == 0:
            return
        with self._ledger.transaction() as connection:
            if self._count_down("expire_next"):
                connection.execute("insert into batch_stop (batch_id, stop_at) values (?, ?)", (batch_id, total // 2))
                self._stops[batch_id] = total // 2

    def stop_at(self, batch_id: str) -> int | None:
        """After how many executed lines a batch expires; None where no fault says so."""
        return self._stops.get(batch_id)

    def hides(self, batch_id: str, created_at: float, now: float) -> bool:
        """Whether a batch is too new to be found by its id."""
        if now >= created_at + self.plan.hidden_after_create_s:
            return False
        self.note("hidden_after_create_s", {"batch": batch_id}, now)
        return True

    def note(self, fault: str, detail: Any, now: float) -> None:
        with self._ledger.transaction() as connection:
            log(connection, now, fault, detail)

    def times_struck(self, fault: Fault, subject: str) -> int:
        row = self._ledger.row("select times from fault_hit where fault = ? and subject = ?", (fault.key, subject))
        return 0 if row is None else int(row["times"])

    def call_fault(self, route: str, path: str, now: float) -> CallFault | None:
        """The fault that a call meets now, counted and logged; the first one of the plan wins."""
        with self._ledger.transaction() as connection:
            for fault in self.plan.call:
                if fault.route != route:
                    continue
                seen, struck = self.times_struck(fault, _CALLS_SEEN), self.times_struck(fault, _CALLS_STRUCK)
                _count(connection, [(fault.key, _CALLS_SEEN)])
                spent = fault.times is not None and struck >= fault.times
                if not spent and seen >= fault.after and fault.is_drawn(f"{route} {seen}"):
                    _count(connection, [(fault.key, _CALLS_STRUCK)])
                    log(connection, now, "call", {"route": route, "path": path, "status": fault.status})
                    return fault
        return None

    def file_refusals(self) -> list[FileRefusal]:
        """The refusals of files that are not used up."""
        return [
            fault
            for fault in self.plan.refuse_file
            if fault.times is None or self.times_struck(fault, _ANY_FILE) < fault.times
        ]

    def short_content(self, file_id: str, whole: bytes, now: float | None) -> bytes:
        """What there is of an output file at this download, counted and logged; at a look at its size, where `now` is
        None."""
        fault = self.plan.short_content
        if fault is None:
            return whole
        there = fault.shown(whole, self.times_struck(fault, file_id))
        if now is not None and there != whole:
            with self._ledger.transaction() as connection:
                _count(connection, [(fault.key, file_id)])
                log(connection, now, "short_content", {"file": file_id, "bytes": len(there), "whole": len(whole)})
        return there

    def record_file_refusal(self, fault: FileRefusal, batch_id: str | None, lines: Sequence[int], now: float) -> None:
        with self._ledger.transaction() as connection:
            _count(connection, [(fault.key, _ANY_FILE)])
            log(connection, now, "refuse_file", {"batch": batch_id, "code": fault.code, "lines": list(lines)})

    def entries(self) -> list[dict[str, Any]]:
        rows = self._ledger.rows("select at, fault, detail from fault_log order by seq")
        return [{"at": row["at"], "fault": row["fault"], "detail": json.loads(row["detail"])} for row in rows]

    def _count_down(self, counter: Counter | Literal["expire_next"]) -> bool:
        left: int = getattr(self.plan, counter)
        if left == 0:
            return False
        plan = self.plan.model_copy(update={counter: left - 1})
        self._keep("faults", plan.model_dump_json())
        self.plan = plan
        return True

    def _setting(self, name: str) -> str | None:
        row = self._ledger.row("select value from setting where name = ?", (name,))
        return None if row is None else str(row["value"])

    def _keep(self, name: str, value: str) -> None:
        self._ledger.execute("insert or replace into setting (name, value) values (?, ?)", (name, value))


def log(connection: sqlite3.Connection, now: float, fault: str, detail: Any) -> None:
    connection.execute("insert into fault_log (at, fault, detail) values (?, ?, ?)", (now, fault, json.dumps(detail)))


def record_line_faults(connection: sqlite3.Connection, now: float, batch_id: str, hits: Sequence[LineFaultHit]) -> None:
    """Count and log line faults inside the transaction that commits their lines."""
    _count(connection, [(hit.fault.key, hit.request_sha256) for hit in hits])
    for hit in hits:
        log(connection, now, *hit.entry(batch_id))


def record_expired(connection: sqlite3.Connection, now: float, batch_id: str, custom_ids: Sequence[str]) -> None:
    """Log the lines that a fault kept from being executed."""
    for custom_id in custom_ids:
        log(connection, now, "expire_next", {"batch": batch_id, "custom_id": custom_id, "executed": False})


def _count(connection: sqlite3.Connection, strikes: Sequence[tuple[str, str]]) -> None:
    connection.executemany(
        "insert into fault_hit (fault, subject, times) values (?, ?, 1)"
        " on conflict (fault, subject) do update set times = times + 1",
        strikes,
    )

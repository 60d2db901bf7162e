"""Executing a chunk of a batch's lines: pure work first, then one commit of results, progress and books."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from dev.practice_provider.batch_states import BatchRow, stem
from dev.practice_provider.books import RECORD, Execution, body_sha256, first_turn_sha256
from dev.practice_provider.fault_board import FaultBoard, LineFaultHit, record_line_faults
from dev.practice_provider.faults import LineError, OddAnswer
from dev.practice_provider.input_index import InputIndex
from dev.practice_provider.ledger import Ledger
from dev.practice_provider.odd_answers import Odd
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.vendor import Answered, Asked, Completed, Lines, Vendor, Vendors

MOST_LINES = 2000  # of one commit
MOST_SECONDS = 0.25
Struck = TypeVar("Struck", LineError, OddAnswer)


@dataclass(slots=True)
class Chunk:
    """Results that are not committed yet."""

    answers: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    hits: list[LineFaultHit] = field(default_factory=list)
    hit_times: Counter[tuple[str, str]] = field(default_factory=Counter)  # by fault and subject
    succeeded: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, lines: Lines) -> None:
        self.answers += lines.results
        self.errors += lines.errors


class LineExecutor:
    """Executes lines and commits them together with the books.

    A kill between execution and commit executes that chunk's lines again, and the books record them once, as the
    built-in models cost nothing. A line that went to an upstream server is really asked again there: at most the
    lines of one chunk (MOST_SECONDS of work, at least one line).
    """

    def __init__(self, ledger: Ledger, vendors: Vendors, faults: FaultBoard) -> None:
        self._ledger = ledger
        self._vendors = vendors
        self._faults = faults

    def execute(self, batch: BatchRow, index: InputIndex, due: int) -> None:
        chunk, vendor = Chunk(), self._vendors[batch.endpoint]
        until = time.monotonic() + MOST_SECONDS
        input_fd = os.open(self._ledger.path_of(batch.input_file_id), os.O_RDONLY | os.O_CLOEXEC)
        try:
            for position in range(batch.done, min(due, batch.done + MOST_LINES)):
                raw, prompt_tokens = index.line(input_fd, position)
                self._execute_line(vendor, batch, vendor.read(raw), prompt_tokens, chunk)
                if time.monotonic() > until:
                    break
        finally:
            os.close(input_fd)
        self._commit(batch, chunk)

    def _execute_line(self, vendor: Vendor, batch: BatchRow, asked: Asked, prompt_tokens: int, chunk: Chunk) -> None:
        custom_id, question, now = asked.custom_id, asked.question, time.time()
        digest = body_sha256(question)
        answer_id = f"{stem(batch.id)}{batch.done + len(chunk.executions):08x}"
        subject = first_turn_sha256(question, digest)
        fault = self._fault(self._faults.plan.line_error, custom_id, subject, question, chunk)
        if fault is not None:
            outcome: Answered = Refusal(fault.status or 0, fault.message, code=fault.code, type=fault.type)
        else:
            outcome = vendor.run(batch.endpoint, asked, now, answer_id, prompt_tokens or None)
        if isinstance(outcome, Completed):
            chunk.succeeded += 1
            odd = self._odd(vendor, custom_id, subject, question, chunk)
            chunk.add(vendor.answer_lines(odd, answer_id, custom_id, outcome.body))
            paid = (200, outcome.usage.prompt_tokens, outcome.usage.completion_tokens)
        else:
            shape = fault.shape if fault is not None else "documented"
            chunk.add(vendor.error_lines(answer_id, custom_id, outcome, shape))
            chunk.failed += 1
            paid = (outcome.status, 0, 0)
        chunk.prompt_tokens += paid[1]
        chunk.completion_tokens += paid[2]
        chunk.executions.append((batch.id, custom_id, batch.endpoint, str(question.get("model")), digest, *paid, now))

    def _odd(
        self, vendor: Vendor, custom_id: str, subject: str, question: Mapping[str, Any], chunk: Chunk
    ) -> Odd | None:
        possible = [one for one in self._faults.plan.answer if one.kind in vendor.odd_kinds]
        fault = self._fault(possible, custom_id, subject, question, chunk)
        return None if fault is None else fault.kind

    def _fault(
        self, faults: Sequence[Struck], custom_id: str, subject: str, question: Mapping[str, Any], chunk: Chunk
    ) -> Struck | None:
        """The first fault that strikes this execution, noted in the chunk."""
        for fault in faults:
            if not fault.hits(custom_id, subject, question):
                continue
            times = chunk.hit_times[fault.key, subject]
            if fault.times is None or self._faults.times_struck(fault, subject) + times < fault.times:
                chunk.hits.append(LineFaultHit(fault, custom_id, subject))
                chunk.hit_times[fault.key, subject] += 1
                return fault
        return None

    def _commit(self, batch: BatchRow, chunk: Chunk) -> None:
        answers = append_at(self._ledger.path_of(output_id(batch.id)), batch.output_bytes, chunk.answers)
        errors = append_at(self._ledger.path_of(error_id(batch.id)), batch.error_bytes, chunk.errors)
        with self._ledger.transaction() as connection:
            # A cancel that came in meanwhile changes the status only: what was executed is kept.
            connection.execute(
                "update batch set done = done + ?, succeeded = succeeded + ?, failed = failed + ?, output_bytes = ?,"
                " error_bytes = ?, input_tokens = input_tokens + ?, output_tokens = output_tokens + ?"
                " where id = ?",
                (
                    len(chunk.executions),
                    chunk.succeeded,
                    chunk.failed,
                    answers,
                    errors,
                    chunk.prompt_tokens,
                    chunk.completion_tokens,
                    batch.id,
                ),
            )
            connection.executemany(RECORD, chunk.executions)
            record_line_faults(connection, time.time(), batch.id, chunk.hits)


def output_id(batch_id: str) -> str:
    """The output file's id is known from the start: its bytes grow in place and become visible at the end."""
    return f"file-o{stem(batch_id)}"


def is_output(file_id: str) -> bool:
    return file_id.startswith("file-o")


def error_id(batch_id: str) -> str:
    return f"file-e{stem(batch_id)}"


def append_at(path: Path, size: int, pieces: Sequence[bytes]) -> int:
    """Write after the first `size` bytes, dropping what an uncommitted attempt left there. Returns the new size."""
    if not pieces:
        return size
    with path.open("r+b" if path.exists() else "w+b") as target:
        target.truncate(size)
        target.seek(size)
        target.writelines(pieces)
        return target.tell()

"""Executing a chunk of a batch's lines: pure work first, then one commit of results, progress and books."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import orjson

from dev.practice_provider.batch_states import BatchRow
from dev.practice_provider.books import RECORD, Execution, body_sha256, first_turn_sha256
from dev.practice_provider.fault_board import FaultBoard, LineFaultHit, record_line_faults
from dev.practice_provider.faults import LineError, OddAnswer
from dev.practice_provider.inference import Answered, Completed, Inference
from dev.practice_provider.input_index import InputIndex
from dev.practice_provider.ledger import Ledger
from dev.practice_provider.line_shapes import Shape, shaped_line
from dev.practice_provider.odd_answers import result_lines
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.result_lines import response_line, unanswered_line

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


class LineExecutor:
    """Executes lines and commits them together with the books.

    A kill between execution and commit executes that chunk's lines again, and the books record them once, as the
    built-in models cost nothing. A line that went to an upstream server is really asked again there: at most the
    lines of one chunk (MOST_SECONDS of work, at least one line).
    """

    def __init__(self, ledger: Ledger, inference: Inference, faults: FaultBoard) -> None:
        self._ledger = ledger
        self._inference = inference
        self._faults = faults

    def execute(self, batch: BatchRow, index: InputIndex, due: int) -> None:
        chunk = Chunk()
        until = time.monotonic() + MOST_SECONDS
        input_fd = os.open(self._ledger.path_of(batch.input_file_id), os.O_RDONLY | os.O_CLOEXEC)
        try:
            for position in range(batch.done, min(due, batch.done + MOST_LINES)):
                raw, prompt_tokens = index.line(input_fd, position)
                self._execute_line(batch, orjson.loads(raw), prompt_tokens, chunk)
                if time.monotonic() > until:
                    break
        finally:
            os.close(input_fd)
        self._commit(batch, chunk)

    def _execute_line(self, batch: BatchRow, line: dict[str, Any], prompt_tokens: int, chunk: Chunk) -> None:
        custom_id, body, now = line["custom_id"], line["body"], time.time()
        digest = body_sha256(body)
        answer_id = f"{batch.id[6:]}{batch.done + len(chunk.executions):08x}"
        subject = first_turn_sha256(body, digest)
        fault = self._fault(self._faults.plan.line_error, custom_id, subject, body, chunk)
        if fault is not None:
            outcome: Answered = Refusal(fault.status or 0, fault.message, code=fault.code, type=fault.type)
        else:
            outcome = self._inference.run(batch.endpoint, body, now, answer_id, prompt_tokens)
        request_id = f"batch_req_{answer_id}"
        if isinstance(outcome, Completed):
            self._answered(request_id, custom_id, subject, body, outcome, chunk)
            paid = (200, outcome.usage.prompt_tokens, outcome.usage.completion_tokens)
        else:
            shape = fault.shape if fault is not None else "documented"
            chunk.errors.append(_failed_line(request_id, custom_id, outcome, shape))
            chunk.failed += 1
            paid = (outcome.status, 0, 0)
        chunk.executions.append((batch.id, custom_id, batch.endpoint, str(body.get("model")), digest, *paid, now))

    def _answered(
        self, request_id: str, custom_id: str, subject: str, body: dict[str, Any], outcome: Completed, chunk: Chunk
    ) -> None:
        chunk.succeeded += 1
        chunk.prompt_tokens += outcome.usage.prompt_tokens
        chunk.completion_tokens += outcome.usage.completion_tokens
        odd = self._fault(self._faults.plan.answer, custom_id, subject, body, chunk)
        if odd is None:
            chunk.answers.append(response_line(request_id, custom_id, 200, outcome.body))
        else:
            answers, errors = result_lines(odd.kind, request_id, custom_id, outcome.body)
            chunk.answers += answers
            chunk.errors += errors

    def _fault(
        self, faults: Sequence[Struck], custom_id: str, subject: str, body: dict[str, Any], chunk: Chunk
    ) -> Struck | None:
        """The first fault that strikes this execution, noted in the chunk."""
        for fault in faults:
            if not fault.hits(custom_id, subject, body):
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
    return f"file-o{batch_id[6:]}"


def is_output(file_id: str) -> bool:
    return file_id.startswith("file-o")


def error_id(batch_id: str) -> str:
    return f"file-e{batch_id[6:]}"


def append_at(path: Path, size: int, pieces: Sequence[bytes]) -> int:
    """Write after the first `size` bytes, dropping what an uncommitted attempt left there. Returns the new size."""
    if not pieces:
        return size
    with path.open("r+b" if path.exists() else "w+b") as target:
        target.truncate(size)
        target.seek(size)
        target.writelines(pieces)
        return target.tell()


def _failed_line(request_id: str, custom_id: str, refusal: Refusal, shape: Shape) -> bytes:
    if shape != "documented":
        return shaped_line(shape, request_id, custom_id, refusal)
    if refusal.status == 0:
        return unanswered_line(request_id, custom_id, refusal.code, refusal.message)
    return response_line(request_id, custom_id, refusal.status, refusal.body())

"""Executing a chunk of a batch's lines: pure work first, then one commit of results, progress and books."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from nightmill.simulator.batch_states import BatchRow
from nightmill.simulator.books import RECORD, Execution, body_sha256
from nightmill.simulator.faults import FaultBoard, LineError, LineFaultHit, record_line_faults
from nightmill.simulator.inference import Answered, Completed, Inference
from nightmill.simulator.input_index import InputIndex
from nightmill.simulator.ledger import Ledger
from nightmill.simulator.refusal import Refusal

MOST_LINES = 2000  # of one commit
MOST_SECONDS = 0.25


@dataclass(slots=True)
class Chunk:
    """Results that are not committed yet."""

    answers: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    hits: list[LineFaultHit] = field(default_factory=list)
    hit_times: Counter[tuple[str, str]] = field(default_factory=Counter)  # by fault and body
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
        fault = self._fault(custom_id, digest, chunk)
        if fault is not None:
            chunk.hits.append(LineFaultHit(fault, custom_id, digest))
            chunk.hit_times[fault.key, digest] += 1
            outcome: Answered = Refusal(fault.status or 0, fault.message, code=fault.code, type=fault.type)
        else:
            outcome = self._inference.run(batch.endpoint, body, now, answer_id, prompt_tokens)
        request_id = f"batch_req_{answer_id}"
        if isinstance(outcome, Completed):
            usage = outcome.usage
            chunk.answers.append(response_line(request_id, custom_id, 200, outcome.body))
            chunk.prompt_tokens += usage.prompt_tokens
            chunk.completion_tokens += usage.completion_tokens
            paid = (200, usage.prompt_tokens, usage.completion_tokens)
        else:
            chunk.errors.append(_failed_line(request_id, custom_id, outcome))
            paid = (outcome.status, 0, 0)
        chunk.executions.append((batch.id, custom_id, batch.endpoint, str(body.get("model")), digest, *paid, now))

    def _fault(self, custom_id: str, digest: str, chunk: Chunk) -> LineError | None:
        for fault in self._faults.plan.line_error:
            if not fault.hits(custom_id, digest):
                continue
            if fault.times is None:
                return fault
            if self._faults.times_failed(fault, digest) + chunk.hit_times[fault.key, digest] < fault.times:
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
                    len(chunk.answers),
                    len(chunk.errors),
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


def response_line(request_id: str, custom_id: str, status: int, body: dict[str, Any]) -> bytes:
    response = {"status_code": status, "request_id": request_id.replace("batch_req_", "req_"), "body": body}
    line = {"id": request_id, "custom_id": custom_id, "response": response, "error": None}
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def unanswered_line(request_id: str, custom_id: str, code: str | None, message: str) -> bytes:
    line = {"id": request_id, "custom_id": custom_id, "response": None, "error": {"code": code, "message": message}}
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def _failed_line(request_id: str, custom_id: str, refusal: Refusal) -> bytes:
    if refusal.status == 0:
        return unanswered_line(request_id, custom_id, refusal.code, refusal.message)
    return response_line(request_id, custom_id, refusal.status, refusal.body())

"""OpenAI as the engine sees it: an input file that is checked after create, and two result files."""

from __future__ import annotations

import time
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

import orjson

from dev.practice_provider import input_index
from dev.practice_provider.batch_states import BatchRow, Status
from dev.practice_provider.batch_store import BatchStore
from dev.practice_provider.execution import error_id, output_id
from dev.practice_provider.fault_board import FaultBoard
from dev.practice_provider.faults import FileRefusal
from dev.practice_provider.file_store import FileStore
from dev.practice_provider.inference import Inference
from dev.practice_provider.ledger import Ledger
from dev.practice_provider.line_shapes import Shape
from dev.practice_provider.odd_answers import Odd
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.refused_files import custom_ids, strike
from dev.practice_provider.settings import Settings
from dev.practice_provider.vendor import Answered, Asked, Lines, ResultFile
from dev.practice_provider.vendors.openai.bodies import CHAT, ENDPOINTS, run
from dev.practice_provider.vendors.openai.face import error_body
from dev.practice_provider.vendors.openai.odd_lines import ODD_KINDS, odd_lines
from dev.practice_provider.vendors.openai.result_lines import response_line, unanswered_line
from dev.practice_provider.vendors.openai.shaped_lines import shaped_line
from dev.practice_provider.vendors.openai.validation import MOST_PROBLEMS, Checked, FileValidator, Problem, problem

# Source of the codes: OpenAI's batch guide ("Batch expiration") and its API description of BatchRequestOutput.error.
_UNFINISHED = {
    Status.EXPIRED: ("batch_expired", "This request could not be executed before the completion window expired."),
    Status.CANCELLED: ("batch_cancelled", "The batch was cancelled before this request was executed."),
}


class OpenAI:
    endpoints: Set[str] = frozenset(ENDPOINTS)
    odd_kinds: Set[Odd] = ODD_KINDS

    def __init__(
        self, settings: Settings, ledger: Ledger, files: FileStore, inference: Inference, faults: FaultBoard
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._files = files
        self._batches = BatchStore(ledger)
        self._inference = inference
        self._faults = faults

    def admit(self, batch: BatchRow) -> bool:
        checked = self._check(batch)
        problems = checked.problems or self._complaints(batch)
        if problems:
            self._batches.fail(batch, problems, checked.lines, time.time())
            self._files.sweep(batch.input_file_id)
            return False
        input_index.save(input_index.path_of(self._ledger, batch.id), checked.starts, checked.prompt_tokens)
        limit = self._settings.enqueued_limit(checked.model)
        if self._batches.accept(batch, checked.model, checked.lines, sum(checked.prompt_tokens), limit):
            return True
        message = (
            f"Enqueued token limit reached for {checked.model} in organization org-simulator. Limit: {limit:,}"
            " enqueued tokens. Please try again once some in_progress batches have been completed."
        )
        self._batches.fail(batch, [problem("token_limit_exceeded", message)], checked.lines, time.time())
        return False

    def _check(self, batch: BatchRow) -> Checked:
        validator = FileValidator(
            batch.endpoint,
            self._knows,
            self._inference.count,
            self._settings.requests_per_file,
            self._settings.embedding_inputs_per_batch,
        )
        return validator.check(self._files.path_of(batch.input_file_id))

    def _knows(self, endpoint: str, model: str) -> bool:
        return self._inference.knows_chat(model) if endpoint == CHAT else self._inference.knows_embedding(model)

    def _complaints(self, batch: BatchRow) -> list[Problem]:
        path = self._files.path_of(batch.input_file_id)
        struck = strike(self._faults, batch.id, path)
        return [] if struck is None else _complaints(*struck, path)

    def read(self, raw: bytes) -> Asked:
        line = orjson.loads(raw)
        return Asked(line["custom_id"], line["body"], line["body"])

    def run(
        self, endpoint: str, asked: Asked, now: float, answer_id: str, prompt_tokens: int | None = None
    ) -> Answered:
        return run(self._inference, endpoint, asked.body, now, answer_id, prompt_tokens)

    def answer_lines(self, odd: Odd | None, answer_id: str, custom_id: str, body: dict[str, Any]) -> Lines:
        request_id = f"batch_req_{answer_id}"
        if odd is not None:
            return Lines(*odd_lines(odd, request_id, custom_id, body))
        return Lines([response_line(request_id, custom_id, 200, body)])

    def error_lines(self, answer_id: str, custom_id: str, refusal: Refusal, shape: Shape) -> Lines:
        request_id = f"batch_req_{answer_id}"
        if shape != "documented":
            line = shaped_line(shape, request_id, custom_id, refusal)
        elif refusal.status == 0:
            line = unanswered_line(request_id, custom_id, refusal.code, refusal.message)
        else:
            line = response_line(request_id, custom_id, refusal.status, error_body(refusal))
        return Lines(errors=[line])

    def unfinished_lines(self, answer_id: str, custom_id: str, to: Status) -> Lines:
        return Lines(errors=[unanswered_line(f"batch_req_{answer_id}", custom_id, *_UNFINISHED[to])])

    def result_files(self, batch: BatchRow, result_bytes: int, error_bytes: int) -> Sequence[ResultFile]:
        """Files that are not empty; with the fault `empty_error_files` an error file always."""
        files = []
        if result_bytes:
            files.append(ResultFile(output_id(batch.id), f"{batch.id}_output.jsonl", result_bytes))
        if error_bytes or self._faults.plan.empty_error_files:
            self._ledger.path_of(error_id(batch.id)).touch()
            files.append(ResultFile(error_id(batch.id), f"{batch.id}_error.jsonl", error_bytes))
        return files

    def release(self, batch: BatchRow) -> None:
        self._files.sweep(batch.input_file_id)


def _complaints(fault: FileRefusal, lines: list[int], path: Path) -> list[Problem]:
    if not (fault.named and lines):
        return [problem(fault.code, fault.message)]
    named = lines[:MOST_PROBLEMS]
    ids = custom_ids(path, set(named)) if fault.custom_ids else {}
    return [
        problem(fault.code, f"{fault.message} {ids.get(line, '')}".strip(), line - 1 + fault.first_line)
        for line in named
    ]

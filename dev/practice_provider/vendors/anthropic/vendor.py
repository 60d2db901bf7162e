"""Anthropic as the engine sees it: requests that came with the create, and one stream of results."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import orjson

from dev.practice_provider.batch_states import BatchRow, Status
from dev.practice_provider.inference import Inference
from dev.practice_provider.ledger import Ledger
from dev.practice_provider.line_shapes import Shape
from dev.practice_provider.odd_answers import Odd
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.vendor import Answered, Asked, Lines, ResultFile
from dev.practice_provider.vendors.anthropic.bodies import MESSAGES, run
from dev.practice_provider.vendors.anthropic.odd_lines import ODD_KINDS, odd_lines
from dev.practice_provider.vendors.anthropic.params import LONG_OUTPUT, MOST_OUTPUT, MOST_OUTPUT_LONG
from dev.practice_provider.vendors.anthropic.question import question
from dev.practice_provider.vendors.anthropic.result_lines import (
    errored_line,
    flat_errored_line,
    succeeded_line,
    unfinished_line,
)

_UNFINISHED = {Status.EXPIRED: "expired", Status.CANCELLED: "canceled"}


class Anthropic:
    endpoints: Set[str] = frozenset({MESSAGES})
    odd_kinds: Set[Odd] = ODD_KINDS

    def __init__(self, ledger: Ledger, inference: Inference) -> None:
        self._ledger = ledger
        self._inference = inference

    def admit(self, batch: BatchRow) -> bool:
        """Its batches are created with their input index (see batches.py): there is nothing left to check."""
        raise AssertionError(batch.id)

    def read(self, raw: bytes) -> Asked:
        line = orjson.loads(raw)
        return Asked(line["custom_id"], line, question(line["params"]))

    def run(
        self, endpoint: str, asked: Asked, now: float, answer_id: str, prompt_tokens: int | None = None
    ) -> Answered:
        most_output = MOST_OUTPUT_LONG if LONG_OUTPUT in asked.body["betas"] else MOST_OUTPUT
        return run(self._inference, asked.body["params"], asked.question, answer_id, "batch", most_output)

    def answer_lines(self, odd: Odd | None, answer_id: str, custom_id: str, body: dict[str, Any]) -> Lines:
        if odd is not None:
            return Lines(odd_lines(odd, custom_id, body, f"req_{answer_id}"))
        return Lines([succeeded_line(custom_id, body)])

    def error_lines(self, answer_id: str, custom_id: str, refusal: Refusal, shape: Shape) -> Lines:
        """There is one odd shape of errors here: any that is not the documented one means it."""
        if shape != "documented":
            return Lines([flat_errored_line(custom_id, refusal)])
        return Lines([errored_line(custom_id, refusal, f"req_{answer_id}")])

    def unfinished_lines(self, answer_id: str, custom_id: str, to: Status) -> Lines:
        return Lines([unfinished_line(custom_id, _UNFINISHED[to])])

    def result_files(self, batch: BatchRow, result_bytes: int, error_bytes: int) -> Sequence[ResultFile]:
        """None of them: the results are read from the batch's own address."""
        return ()

    def release(self, batch: BatchRow) -> None:
        self._ledger.path_of(batch.input_file_id).unlink(missing_ok=True)

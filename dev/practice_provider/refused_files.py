"""Files that the fault plan has refused in validation although they are good."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence, Set
from pathlib import Path

from dev.practice_provider.batch_states import BatchRow
from dev.practice_provider.fault_board import FaultBoard
from dev.practice_provider.faults import FileRefusal
from dev.practice_provider.validation import MOST_PROBLEMS, Problem, problem


def refusals(faults: FaultBoard, batch: BatchRow, path: Path) -> list[Problem]:
    """What the plan has to say against an input file; the first fault that hits it is counted and logged."""
    for fault in faults.file_refusals():
        lines = _lines_hit(fault, path)
        if fault.match is None or lines:
            faults.record_file_refusal(fault, batch.id, lines, time.time())
            if fault.named and lines:
                return _complaints(fault, path, lines[:MOST_PROBLEMS])
            return [problem(fault.code, fault.message)]
    return []


def _complaints(fault: FileRefusal, path: Path, lines: Sequence[int]) -> list[Problem]:
    ids = _custom_ids(path, set(lines)) if fault.custom_ids else {}
    return [
        problem(fault.code, f"{fault.message} {ids.get(line, '')}".strip(), line - 1 + fault.first_line)
        for line in lines
    ]


def _custom_ids(path: Path, lines: Set[int]) -> dict[int, str]:
    with path.open("rb") as source:
        return {
            number: f"(request {json.loads(raw)['custom_id']})"
            for number, raw in enumerate(source, 1)
            if number in lines
        }


def _lines_hit(fault: FileRefusal, path: Path) -> list[int]:
    """Numbers of the lines that `match` is found in, from 1."""
    if fault.match is None:
        return []
    wanted = re.compile(fault.match)
    with path.open("rb") as source:
        return [number for number, raw in enumerate(source, 1) if wanted.search(raw.decode("utf-8", "replace"))]

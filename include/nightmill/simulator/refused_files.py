"""Files that the fault plan has refused in validation although they are good."""

from __future__ import annotations

import re
import time
from pathlib import Path

from nightmill.simulator.batch_states import BatchRow
from nightmill.simulator.fault_board import FaultBoard
from nightmill.simulator.faults import FileRefusal
from nightmill.simulator.validation import MOST_PROBLEMS, Problem, problem


def refusals(faults: FaultBoard, batch: BatchRow, path: Path) -> list[Problem]:
    """What the plan has to say against an input file; the first fault that hits it is counted and logged."""
    for fault in faults.file_refusals():
        lines = _lines_hit(fault, path)
        if fault.match is None or lines:
            faults.record_file_refusal(fault, batch.id, lines, time.time())
            if fault.named and lines:
                return [problem(fault.code, fault.message, line) for line in lines[:MOST_PROBLEMS]]
            return [problem(fault.code, fault.message)]
    return []


def _lines_hit(fault: FileRefusal, path: Path) -> list[int]:
    """Numbers of the lines that `match` is found in, from 1."""
    if fault.match is None:
        return []
    wanted = re.compile(fault.match)
    with path.open("rb") as source:
        return [number for number, raw in enumerate(source, 1) if wanted.search(raw.decode("utf-8", "replace"))]

"""Files that the fault plan has refused in validation although they are good."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Set
from pathlib import Path

from dev.practice_provider.fault_board import FaultBoard
from dev.practice_provider.faults import FileRefusal


def strike(faults: FaultBoard, batch_id: str | None, path: Path) -> tuple[FileRefusal, list[int]] | None:
    """The first fault that hits an input file, counted and logged, and the numbers of the lines it hits."""
    for fault in faults.file_refusals():
        lines = _lines_hit(fault, path)
        if fault.match is None or lines:
            faults.record_file_refusal(fault, batch_id, lines, time.time())
            return fault, lines
    return None


def custom_ids(path: Path, lines: Set[int]) -> dict[int, str]:
    """How a complaint names the requests of some lines."""
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

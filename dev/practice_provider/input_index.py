"""Where each line of a batch's input file begins, what it costs, and in which order the lines are executed."""

from __future__ import annotations

import os
import random
from array import array
from dataclasses import dataclass
from pathlib import Path

from dev.practice_provider.ledger import Ledger


@dataclass(frozen=True, slots=True)
class InputIndex:
    """12 bytes of memory per line and 4 for the order. `starts` has one more entry than there are lines."""

    starts: array[int]
    prompt_tokens: array[int]
    order: array[int]

    def line(self, input_fd: int, position: int) -> tuple[bytes, int]:
        """The raw line that is executed `position`-th and its prompt tokens."""
        number = self.order[position]
        start = self.starts[number]
        return os.pread(input_fd, self.starts[number + 1] - start, start), self.prompt_tokens[number]


def shuffled(starts: array[int], prompt_tokens: array[int], seed: str) -> InputIndex:
    """The order is a function of the seed, so that a restarted simulator goes on with the same one."""
    order = array("I", range(len(prompt_tokens)))
    random.Random(seed).shuffle(order)
    return InputIndex(starts, prompt_tokens, order)


def path_of(ledger: Ledger, batch_id: str) -> Path:
    return ledger.path_of(f"{batch_id}.index")


def save(path: Path, starts: array[int], prompt_tokens: array[int]) -> None:
    partial = path.with_suffix(".partial")
    with partial.open("wb") as target:
        array("Q", [len(prompt_tokens)]).tofile(target)
        starts.tofile(target)
        prompt_tokens.tofile(target)
    partial.rename(path)


def load(path: Path, seed: str) -> InputIndex:
    head, starts, prompt_tokens = array("Q"), array("Q"), array("I")
    with path.open("rb") as source:
        head.fromfile(source, 1)
        starts.fromfile(source, head[0] + 1)
        prompt_tokens.fromfile(source, head[0])
    return shuffled(starts, prompt_tokens, seed)

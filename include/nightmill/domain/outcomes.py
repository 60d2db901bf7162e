"""What checking an answer or an input came to. Accepted is made once per item: a Struct, ten times as quick to make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from nightmill.domain.failures import Failure


@dataclass(frozen=True, slots=True)
class CitedSpan:
    """Where a quoted span stands in its source: characters start..end of the payload column `source`.

    `differing` are the words that were misread, as (in the quotation, in the source).
    """

    quote: str
    source: str
    start: int
    end: int
    method: str
    score: float
    differing: tuple[tuple[str, str], ...] = ()


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """An answer that holds to the contract. `notes` name lossless repairs of its text."""

    answer: dict[str, Any]
    notes: tuple[str, ...] = ()
    citations: tuple[CitedSpan, ...] = ()


Verdict = Accepted | Failure


class NeverSent(NamedTuple):
    """Why nothing is sent for an input: the code and class of what a check found. `message` is that of its dead letter;
    None: the item is left out without one."""

    code: str
    kind: str
    message: str | None = None

"""What the engine asks of a vendor: how its batches are read, answered and ended. Each has a folder in vendors/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

from dev.practice_provider.batch_states import BatchRow, Status
from dev.practice_provider.line_shapes import Shape
from dev.practice_provider.models.port import Usage
from dev.practice_provider.odd_answers import Odd
from dev.practice_provider.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a batch. `body` is what the vendor's API was sent. `question` is the same as OpenAI's chat or
    embeddings body, which models read, the books hash and faults are matched with."""

    custom_id: str
    body: Mapping[str, Any]
    question: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Completed:
    """An answer as the vendor's response body, and what was paid for it."""

    body: dict[str, Any]
    usage: Usage


Answered = Completed | Refusal


@dataclass(frozen=True, slots=True)
class Lines:
    """Pieces of a batch's result files. A vendor with one stream of results leaves `errors` empty."""

    results: Sequence[bytes] = ()
    errors: Sequence[bytes] = ()


@dataclass(frozen=True, slots=True)
class ResultFile:
    id: str
    name: str
    bytes: int


class Vendor(Protocol):
    """`endpoints` are the addresses that its batches execute. `odd_kinds` are the odd answers that it can give: a fault
    of another kind passes its lines by."""

    @property
    def endpoints(self) -> Set[str]: ...

    @property
    def odd_kinds(self) -> Set[Odd]: ...

    def admit(self, batch: BatchRow) -> bool:
        """Check the input of a batch that was created unchecked. True: the batch is validated and has its input index.
        False: it has failed."""
        ...

    def read(self, raw: bytes) -> Asked:
        """A line of an admitted batch's input."""
        ...

    def run(
        self, endpoint: str, asked: Asked, now: float, answer_id: str, prompt_tokens: int | None = None
    ) -> Answered:
        """Execute one request of a batch. `answer_id` is unique to this answer; `prompt_tokens` when they are known."""
        ...

    def answer_lines(self, odd: Odd | None, answer_id: str, custom_id: str, body: dict[str, Any]) -> Lines: ...

    def error_lines(self, answer_id: str, custom_id: str, refusal: Refusal, shape: Shape) -> Lines: ...

    def unfinished_lines(self, answer_id: str, custom_id: str, to: Status) -> Lines:
        """The lines of a request that was not executed before its batch ended as `to` (expired or cancelled)."""
        ...

    def result_files(self, batch: BatchRow, result_bytes: int, error_bytes: int) -> Sequence[ResultFile]:
        """The files that become visible when the batch ends."""
        ...

    def release(self, batch: BatchRow) -> None:
        """The batch has ended: free what only its execution needed. May be called again."""
        ...


Vendors = Mapping[str, Vendor]  # by endpoint


def by_endpoint(vendors: Sequence[Vendor]) -> Vendors:
    return {endpoint: vendor for vendor in vendors for endpoint in vendor.endpoints}

"""Faults that the simulator injects on request: the plan. What it did stands in the log (fault_board.py).

A plan is a frozen value; POST /_faults replaces it, PATCH /_faults changes single fields. Counters ("the next N")
count down in the stored plan, so that a restarted simulator goes on where it was.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from dev.practice_provider.line_shapes import Shape
from dev.practice_provider.odd_answers import Odd
from dev.practice_provider.tokens import message_texts


class Fault(BaseModel):
    """A fault with a memory. `times`: how often it strikes one subject before that is spared; None = always."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    times: int | None = Field(default=1, ge=1)

    @cached_property
    def key(self) -> str:
        """Names this fault in the memory of what it did."""
        return hashlib.sha256(f"{type(self).__name__}:{self.model_dump_json()}".encode()).hexdigest()[:16]


class DrawnFault(Fault):
    """A fault that may strike a share of its subjects only: the same ones for the same seed.

    Each subject draws a number from 0 to 1, and those from `start` to `start + rate` are struck: so faults of one seed
    whose ranges lie side by side never strike the same subject.
    """

    rate: float | None = Field(default=None, ge=0, le=1)
    start: float = Field(default=0, ge=0, le=1)
    seed: int = 0

    def is_drawn(self, subject: str) -> bool:
        if self.rate is None:
            return True
        digest = hashlib.sha256(f"{self.seed}:{subject}".encode()).digest()
        draw = int.from_bytes(digest[:8], "big") / 2**64
        return self.start <= draw < self.start + self.rate


class ItemFault(DrawnFault):
    """A fault of single lines. Chosen by `match` (a regular expression searched in the custom_id), by `text` (one that
    is searched in the messages), by `rate` (a share of all requests, the same ones for the same seed whatever their
    custom_ids), or by several of them; without any it hits all.

    `times` counts the executions of one request. A conversation that goes on after an answer is the same request.
    """

    match: str | None = None
    text: str | None = None

    def hits(self, custom_id: str, request_sha256: str, body: Mapping[str, Any]) -> bool:
        if self.match is not None and not re.search(self.match, custom_id):
            return False
        if self.text is not None and not any(re.search(self.text, one) for one in message_texts(body)):
            return False
        return self.is_drawn(request_sha256)


class LineError(ItemFault):
    """A line that fails instead of being executed.

    `status` None makes a line without a response ({"response": null, "error": {...}}). `shape` is how the line says
    its status: see `line_shapes`.
    """

    shape: Shape = "documented"
    status: int | None = Field(default=500, ge=400, le=599)
    type: str = "server_error"
    code: str = "server_error"
    message: str = "The server had an error while processing your request."


class OddAnswer(ItemFault):
    """A line that is executed and paid for, and whose answer comes back in an odd way or not at all."""

    kind: Odd


class CallFault(DrawnFault):
    """A call that fails before the provider has done anything about it. `route` is written as in the books' `calls`,
    such as "GET /v1/batches/{batch_id}".

    `after`: so many calls of the route pass first. `status` None drops the connection without an answer. `html`
    answers with a page instead of an error object. `rate` draws by the number of the call.
    """

    route: str
    after: int = Field(default=0, ge=0)
    status: int | None = Field(default=503, ge=200, le=599)
    type: str = "server_error"
    code: str | None = None
    message: str = "The server had an error while processing your request."
    headers: dict[str, str] = Field(default_factory=dict)
    html: bool = False


class FileRefusal(Fault):
    """A file that fails in validation although it is good: every file, or with `match` (a regular expression searched
    in its lines) those that hold such a line. `named`: the complaint names those lines, counted from `first_line`, and
    with `custom_ids` their ids in its message. `times` counts files."""

    match: str | None = None
    named: bool = False
    first_line: Literal[0, 1] = 1
    custom_ids: bool = False
    code: str = "invalid_request"
    message: str = "The input file was refused."


class ShortContent(Fault):
    """Output files of ended batches that are not whole in their first `times` downloads: they grow from one to the
    next, are empty, or an error object comes in their place. Sizes and counts are those of the moment."""

    kind: Literal["growing", "empty", "error"] = "growing"
    times: int | None = Field(default=3, ge=1)

    def shown(self, whole: bytes, downloads: int) -> bytes:
        """What is seen of a file after so many downloads."""
        if self.times is not None and downloads >= self.times:
            return whole
        if self.kind == "growing":
            part = whole[: len(whole) * downloads // (self.times or 2)]
            return part[: part.rfind(b"\n") + 1]
        return b"" if self.kind == "empty" else b'{"error": {"message": "The file is not ready yet.", "code": null}}'


class Listing(BaseModel):
    """How GET /v1/batches departs from what OpenAI documents. `before` and `after` are other people's batches on the
    account, made before the first and after the last one of ours."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    order: Literal["newest first", "oldest first"] = "newest first"
    hidden: bool = False  # shows none of ours
    repeating: bool = False  # `after` is ignored, and more is promised for ever
    before: int = Field(default=0, ge=0)
    after: int = Field(default=0, ge=0)


class FaultPlan(BaseModel):
    """What goes wrong. Delays come after the work is done and before the answer leaves, except for
    `content_delay_s`, which comes before the first byte. The chunk is the unit of `slow_content_ms`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    drop_create_reply: int = Field(default=0, ge=0)  # the next N creates: accepted, connection closed, no answer
    fail_create_after_accept: int = Field(default=0, ge=0)  # the next N creates: accepted, answered 500
    line_error: tuple[LineError, ...] = ()
    answer: tuple[OddAnswer, ...] = ()
    call: tuple[CallFault, ...] = ()
    refuse_file: tuple[FileRefusal, ...] = ()
    short_content: ShortContent | None = None
    listing: Listing | None = None
    hidden_after_create_s: float = Field(default=0, ge=0)  # a new batch is not found by its id for so long
    clock_behind_s: float = 0  # all times of batches and files, and the Date of every answer
    hold: bool = False  # batches stay in_progress until this is false again
    hold_after: int | None = Field(default=None, ge=0)  # while held, execute at most this many lines of each batch
    stuck: Literal["validating", "finalizing", "cancelling"] | None = None  # batches stay so while this is set
    expire_next: int = Field(default=0, ge=0)  # the next N batches expire with half of their lines executed
    status_shown: str | None = None  # unfinished batches show this word
    counts_lie: bool = False  # batches say that all their requests completed
    usage_shown: Literal["impossible", "none"] | None = None  # what ended batches say instead of their usage
    total_off: int = 0  # batches count so many requests more than they have
    hide_files: int = Field(default=0, ge=0)  # the next N retrievals of an ended batch name no result files
    hide_counts: int = Field(default=0, ge=0)  # the next N retrievals of an ended batch count nothing
    empty_error_files: bool = False  # every batch ends with an error file, an empty one where nothing failed
    cut_content: int = Field(default=0, ge=0)  # the next N downloads stop half-way, their length announced
    cut_content_unannounced: int = Field(default=0, ge=0)  # the same at the end of a line, no length announced
    create_delay_s: float = Field(default=0, ge=0)
    upload_delay_s: float = Field(default=0, ge=0)
    content_delay_s: float = Field(default=0, ge=0)
    slow_content_ms: float = Field(default=0, ge=0)
    content_chunk_bytes: int = Field(default=64 * 1024, gt=0)

    @field_validator("line_error", "answer", "call", "refuse_file", mode="before")
    @classmethod
    def _one_is_a_list_of_one(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value

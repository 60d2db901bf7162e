"""What comes back for one request, in our own words, whoever answered.

One of these is made per item, so they are msgspec Structs: a frozen dataclass takes ten times as long to make. None is
ever part of a cycle, so the garbage collector need not walk through them (`gc=False`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nightmill.domain.endings import Ending
from nightmill.domain.failures import Instead


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Tokens as the provider reports them; None means that it did not say (unknown is not zero).

    `uncached`, `cache_read` and `cache_write` add up to the prompt, whatever the vendor calls its sums; `reasoning`
    tokens are part of `output`. Of usage that cannot be no count is taken: `odd` is what the provider wrote.
    """

    uncached: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    odd: Mapping[str, Any] | None = None

    @property
    def prompt(self) -> int | None:
        """All tokens of the prompt; None where the provider did not say."""
        if self.uncached is None:
            return None
        return self.uncached + (self.cache_read or 0) + (self.cache_write or 0)


NO_USAGE = Usage()


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A model's answer. `text` is None for a refusal or an empty message; `instead` then says what the message holds in
    its place.

    Look at `ending` before `text`: a limit or a filter cuts it. `finish_reason` is the provider's own word for it.
    `sanitised`: the line was not clean Unicode JSON and was read with U+FFFD in place of what was broken.
    """

    text: str | None
    refusal: bool
    ending: Ending
    finish_reason: str | None
    model: str | None
    usage: Usage
    sanitised: bool = False
    instead: Instead = ""


class Vector(msgspec.Struct, frozen=True, gc=False):
    """The vector of an embedding request, as the provider sent it: None stands where it wrote something that is no
    number. `sanitised` as in Answer. Such an answer has no output tokens, so where the usage is told they are 0."""

    vector: Sequence[float | None]
    model: str | None
    usage: Usage
    sanitised: bool = False


class Failed(msgspec.Struct, frozen=True, gc=False):
    """An error instead of an answer. `status` is the HTTP status inside the line (0 when it has none, also where
    something else than a status stands there).

    `code` is the provider's own, or `provider_unknown` (it failed and does not say why), or
    `provider_protocol_error` (it says that all is well and there is no answer in it). `message` is the provider's, cut
    to 500 characters; it can quote the request, so it never goes into logs. `type` is the provider's broader word.
    """

    status: int
    code: str
    message: str
    usage: Usage
    type: str = ""


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """A line that is not what the provider documents. `line` counts from 1 within its file; 0 where nobody counts."""

    why: str
    line: int = 0


Said = Answer | Vector | Failed


class ResultLine(msgspec.Struct, frozen=True, gc=False):
    """What was said of one request. `record_id` is the one that it went out with."""

    record_id: str
    said: Said


class Reply(msgspec.Struct, frozen=True, gc=False):
    """What an envelope holds for one request, before its dialect reads it.

    `body` is JSON as it came (`null` where there is none). `status` is the envelope's HTTP status: 200 where the
    transport says in another way that the request succeeded, 0 where nothing says it. `errors` stand beside the body,
    as parsed JSON of any shape. `sanitised`: the line had to be mended before it could be read.
    """

    body: msgspec.Raw
    status: int
    errors: Sequence[object] = ()
    sanitised: bool = False

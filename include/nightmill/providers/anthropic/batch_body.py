"""The body of a create call, written from the request file while it goes out: at no time is more of it in memory than
one piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HEAD, _TAIL = b'{"requests":[', b"]}"
_PIECE = 1 << 20
OVERHEAD = len(_HEAD) + len(_TAIL)  # bytes beside those of the request file


@dataclass(frozen=True, slots=True)
class BatchBody:
    """Lines that each end in LF, as one JSON array. A line has no other LF in it: JSON writes those as \\n."""

    path: Path

    @property
    def size(self) -> int:
        """Its length in bytes, so that the call can announce it."""
        return OVERHEAD + self.path.stat().st_size - 1

    def __iter__(self) -> Iterator[bytes]:
        yield _HEAD
        with self.path.open("rb") as source:
            piece = source.read(_PIECE)
            while piece:
                following = source.read(_PIECE)
                if not following:
                    piece = piece.removesuffix(b"\n")
                yield piece.replace(b"\n", b",")
                piece = following
        yield _TAIL

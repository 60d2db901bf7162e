"""Exceptions that are not ours, in words that quote nothing: their own text can hold a document or an answer."""

from __future__ import annotations

import traceback
from pathlib import Path


def described(fault: BaseException, *, passed_by: str | None = None) -> str:
    """Kind, the database's error code, and the way through our own code, innermost last. `passed_by` is the file of
    whoever asks, which says nothing of the fault."""
    way = traceback.extract_tb(fault.__traceback__)
    frames = [frame for frame in way if "/nightmill/" in frame.filename and frame.filename != passed_by]
    place = " > ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames[-4:])
    code = getattr(fault, "sqlstate", None)
    return f"{type(fault).__name__} {f'(SQLSTATE {code}) ' if code else ''}at {place}"

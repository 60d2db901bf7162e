"""Reads a result line that is not as the provider documents it, whatever its envelope."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from nightmill.providers.answers import Reply, Unreadable
from nightmill.providers.dialects.mended_json import mended

_Line = TypeVar("_Line")


def unwrap_carefully(
    line: bytes, read: Callable[[bytes], _Line], parts: Callable[[_Line, bool], tuple[str, Reply]]
) -> tuple[str, Reply] | Unreadable:
    """The record id and the reply of a line. `read` decodes the envelope; `parts` takes it apart, and is told whether
    the line was mended before."""
    try:
        try:
            return parts(read(line), False)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return parts(read(mended(line)), True)
    except msgspec.ValidationError:
        return Unreadable("not a result object with a custom_id")
    except RecursionError:
        return Unreadable("nested too deeply")
    except ValueError:
        return Unreadable("not JSON")

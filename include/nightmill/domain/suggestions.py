"""The valid name that somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

CUTOFF = 0.7  # difflib's measure of likeness: modle and model 0.8, kind and id 0.67


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, whatever its case; None where nothing is alike."""
    by_folded = {one.casefold(): one for one in sorted(known)}
    found = get_close_matches(name.casefold(), by_folded, n=1, cutoff=CUTOFF)
    return by_folded[found[0]] if found else None


def hint(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'model'?`, or nothing."""
    found = nearest(name, known)
    return f"; did you mean {found!r}?" if found else ""


def aside(name: str, known: Iterable[str]) -> str:
    """The same inside a sentence: ` (did you mean 'model'?)`, or nothing."""
    found = nearest(name, known)
    return f" (did you mean {found!r}?)" if found else ""


def listed(known: Iterable[str]) -> str:
    """The known names for a remedy."""
    return ", ".join(sorted(known)) or "(none)"

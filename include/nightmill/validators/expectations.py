"""The expectations that the installed Great Expectations has, told without importing it (7 s and 250 MB)."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_INDEX = Path("expectations", "core", "__init__.py")  # imports every built-in expectation by its class name


@cache
def known_expectations() -> frozenset[str]:
    """Class names of the built-in expectations; empty where the package is missing or laid out in another way, and
    then nothing can be said before check_staging."""
    spec = find_spec("great_expectations")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        index = Path(folder) / _INDEX
        if index.is_file():
            return frozenset(re.findall(r"\bExpect[A-Z]\w+", index.read_text("utf-8")))
    return frozenset()

"""The expectations that the installed Great Expectations has, told without importing it (7 s and 250 MB)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = "great_expectations"
_CORE = Path("expectations", "core")
_INDEX = _CORE / "__init__.py"  # imports every built-in expectation by its class name
_SCHEMAS = _CORE / "schemas"  # one JSON schema per class; a few classes have none
# What every expectation takes and is of no use in checks.yaml.
NO_ARGUMENTS = frozenset(
    {"id", "rendered_content", "batch_id", "catch_exceptions", "windows", "domain_type", "metadata"}
)


@dataclass(frozen=True, slots=True)
class Arguments:
    """What an expectation takes, and what it cannot do without."""

    known: frozenset[str]
    required: frozenset[str]


def installed() -> bool:
    """Whether Great Expectations is here: nightmill's extra gx brings it."""
    return find_spec(_PACKAGE) is not None


@cache
def known_expectations() -> frozenset[str]:
    """Class names of the built-in expectations; empty where the package is missing or laid out in another way, and
    then nothing can be said before check_staging."""
    index = _file(_INDEX)
    return frozenset(re.findall(r"\bExpect[A-Z]\w+", index.read_text("utf-8"))) if index else frozenset()


@lru_cache(maxsize=256)  # job folders name the same ones again and again
def arguments_of(kind: str) -> Arguments | None:
    """The arguments of a built-in expectation; None where the package does not tell them."""
    schema = _file(_SCHEMAS / f"{kind}.json")
    if schema is None:
        return None
    told = json.loads(schema.read_text("utf-8"))
    return Arguments(frozenset(told["properties"]) - NO_ARGUMENTS, frozenset(told.get("required", ())))


def _file(path: Path) -> Path | None:
    spec = find_spec(_PACKAGE)
    folders = (spec.submodule_search_locations or ()) if spec else ()
    found = (Path(folder) / path for folder in folders)
    return next((one for one in found if one.is_file()), None)

"""The demo's many tiny documents: one per Requires-Dist line of the Python distributions installed here."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from collections.abc import Iterable
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from dev.demo.distribution_texts import readable


@dataclass(frozen=True, slots=True)
class ParsedRequirement:
    """The right answers for one line. Empty texts: any version, in any case."""

    package: str
    extras: tuple[str, ...]
    version_range: str
    marker: str
    is_optional: bool


@dataclass(frozen=True, slots=True)
class RequirementLine:
    """One line. `source_id` is made from the distribution and the line, so a new line moves no other one's id.

    `parsed` is None for a line that the standards do not allow.
    """

    source_id: str
    distribution: str
    line: str
    parsed: ParsedRequirement | None


def collect_requirements(
    distributions: Iterable[importlib.metadata.Distribution] | None = None,
) -> list[RequirementLine]:
    """All lines, sorted by source id; a line that a distribution has twice counts once."""
    found: dict[str, RequirementLine] = {}
    for _, metadata, name in readable(distributions):
        for written in metadata.get_all("Requires-Dist") or []:
            line = " ".join(str(written).replace("\x00", "").split())
            if line:
                source_id = f"{name}/{hashlib.sha256(line.encode()).hexdigest()[:12]}"
                found[source_id] = RequirementLine(source_id, name, line, parse_requirement(line))
    return [found[source_id] for source_id in sorted(found)]


def parse_requirement(line: str) -> ParsedRequirement | None:
    """A line as the library `packaging` reads it."""
    try:
        read = Requirement(line)
    except InvalidRequirement:
        return None
    marker = str(read.marker) if read.marker else ""
    outside_quotes = re.sub(r'"[^"]*"', '""', marker)
    return ParsedRequirement(
        package=canonicalize_name(read.name),
        extras=tuple(sorted(read.extras)),
        version_range=str(read.specifier),
        marker=marker,
        is_optional=re.search(r"\bextra\b", outside_quotes) is not None,
    )

"""The house rules of the code that no linter knows: short files, short functions, no import circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
LONGEST_FILE, LONGEST_FUNCTION = 300, 40  # lines
SOURCES = [path for room in ("include/nightmill", "dev") for path in sorted((REPOSITORY / room).rglob("*.py"))]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or 0) - node.lineno + 1


def test_no_file_is_longer_than_300_lines() -> None:
    lines = {str(path.relative_to(REPOSITORY)): len(path.read_text("utf-8").splitlines()) for path in SOURCES}
    assert {name: count for name, count in lines.items() if count > LONGEST_FILE} == {}


def test_no_function_is_longer_than_40_lines() -> None:
    found = {f"{path.relative_to(REPOSITORY)}:{name}": lines for path in SOURCES for name, lines in functions(path)}
    assert {name: lines for name, lines in found.items() if lines > LONGEST_FUNCTION} == {}


def test_no_module_imports_itself_through_others() -> None:
    """At import time: imports inside functions are left out, they are there to be late."""
    names = {module(path): path for path in SOURCES}
    graph = {name: set(imported(path, names)) - {name} for name, path in names.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def module(path: Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(part for part in parts if part not in ("include", "__init__"))


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{name.name}" for name in node.names]
            yield from (
                name if name in known else node.module for name in inner if name in known or node.module in known
            )

"""Nothing waits for ever: every wait in the code is listed with its deadline and its alert."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from nightmill.domain.waits import WAITS, table

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "include" / "nightmill"
WAITING = {"sleep", "wait", "look_again_in", "defer", "pause"}


def names(tree: ast.AST, name: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every node with the dotted name of the function or class around it."""
    for node in ast.iter_child_nodes(tree):
        inside = name
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = f"{name}.{node.name}" if name else node.name
        yield inside, node
        yield from names(node, inside)


def waits(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    if isinstance(called, ast.Attribute) and called.attr == "append":
        return isinstance(called.value, ast.Attribute) and called.value.attr == "wake_times"
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) in WAITING


def parsed() -> dict[str, list[tuple[str, ast.AST]]]:
    files = {str(path.relative_to(SOURCES)): path for path in SOURCES.rglob("*.py")}
    return {name: list(names(ast.parse(path.read_text("utf-8")))) for name, path in files.items()}


def test_every_wait_in_the_code_is_listed_and_every_listed_place_exists() -> None:
    files = parsed()
    found = {f"{file}:{inside}" for file, nodes in files.items() for inside, node in nodes if waits(node)}
    assert len(found) > 10
    listed = {place for one in WAITS for place in one.places}
    unlisted = {place for place in found if not any(fnmatchcase(place, one) for one in listed)}
    assert unlisted == set(), "a wait without a deadline and an alert: add it to domain/waits.py"
    exist = {f"{file}:{inside}" for file, nodes in files.items() for inside, _ in nodes}
    gone = {one for one in listed if not any(fnmatchcase(place, one) for place in exist)}
    assert gone == set(), "domain/waits.py names what is gone"


def test_every_wait_says_until_when_and_who_hears_of_it() -> None:
    assert all(one.what and one.until and one.alert and one.places for one in WAITS)


def test_the_operations_page_shows_them() -> None:
    page = (ROOT / "docs" / "guides" / "operations.md").read_text("utf-8")
    assert table() in page, f"put this table into docs/guides/operations.md:\n{table()}"

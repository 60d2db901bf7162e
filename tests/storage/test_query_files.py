"""Every query has a file in the folder of its entity, and every file is used."""

from __future__ import annotations

import ast
from pathlib import Path

import nightmill
from nightmill import storage

PACKAGE = Path(nightmill.__file__).parent
QUERIES = Path(storage.__file__).parent / "queries"


def _files() -> set[str]:
    return {path.relative_to(QUERIES).with_suffix("").as_posix() for path in QUERIES.rglob("*.sql")}


def _literals() -> set[str]:
    trees = (ast.parse(path.read_text("utf-8")) for path in (PACKAGE / "storage").rglob("*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_every_query_lies_in_a_folder_of_its_entity() -> None:
    assert _files()
    assert {name.count("/") for name in _files()} == {1}
    assert len({name.split("/")[0] for name in _files()}) <= 25


def test_every_query_file_is_used() -> None:
    assert _files() - _literals() == set()


def test_every_query_that_is_named_has_a_file() -> None:
    entities = {name.split("/")[0] for name in _files()}
    named = {text for text in _literals() if text.count("/") == 1 and text.split("/")[0] in entities}
    assert named - _files() == set()


def test_queries_are_read_through_one_function_with_names_that_stand_in_the_code() -> None:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "text":
                assert not any(isinstance(name, ast.JoinedStr | ast.BinOp) for name in node.args), (path, node.lineno)

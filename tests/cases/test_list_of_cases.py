"""docs/reference/cases.md and the tests it names: each exists, and none is left out."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "reference" / "cases.md"
ROW = re.compile(r"^\| C(\d+) \| [^|]+ \| (.+) \|$", re.MULTILINE)
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")
CASE_TEST = re.compile(r"test(?:_c\d+)+_[a-z]")


def case_tests() -> dict[tuple[str, str], set[int]]:
    """(file, test) -> the numbers in its name, for every test that is named after a case."""
    found = {}
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and CASE_TEST.match(node.name):
                numbers = re.match(r"test((?:_c\d+)+)", node.name)
                assert numbers is not None
                found[str(path.relative_to(TESTS)), node.name] = set(map(int, re.findall(r"\d+", numbers[1])))
    return found


def rows() -> dict[int, str]:
    """Case number -> what its row says about tests."""
    return {int(number): said for number, said in ROW.findall(PAGE.read_text("utf-8"))}


def test_every_row_names_a_test_or_says_why_there_is_none() -> None:
    for case, said in rows().items():
        assert NAMED.search(said) or said.startswith(("open: ", "cannot occur: ")), f"C{case}"


def test_every_named_test_exists_and_carries_the_number_of_its_case() -> None:
    tests = case_tests()
    for case, said in rows().items():
        for file, start in NAMED.findall(said):
            numbers = [found for (where, name), found in tests.items() if where == file and name.startswith(start)]
            assert numbers, f"C{case}: no test in {file} begins with {start}"
            assert any(case in found for found in numbers), f"C{case}: {start} in {file} is about other cases"


def test_every_test_named_after_a_case_stands_in_its_row() -> None:
    listed = {(case, file) for case, said in rows().items() for file, _ in NAMED.findall(said)}
    named = {(case, file) for (file, _), cases in case_tests().items() for case in cases}
    assert named - listed == set()


def test_every_test_and_file_that_the_page_names_exists() -> None:
    for file, start in re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", PAGE.read_text("utf-8")):
        assert re.search(rf"^def {start or 'test_'}", (TESTS / file).read_text("utf-8"), re.MULTILINE), (file, start)

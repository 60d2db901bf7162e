"""The rule-based reader of requirement lines: what it makes of lines that are written here by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dev.practice_provider.models.requirement import read_requirement
from dev.practice_provider.models.requirement_reader import RequirementReader


def read(
    package: str, version_range: str = "", marker: str = "", *extras: str, optional: bool = False
) -> dict[str, Any]:
    return {
        "package": package,
        "extras": list(extras),
        "version_range": version_range,
        "marker": marker,
        "is_optional": optional,
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("attrs", read("attrs")),
        ("Ruamel.Yaml_clib>=0.2", read("ruamel-yaml-clib", ">=0.2")),
        ("requests[socks, Use_Chardet] >= 2.31 , < 3", read("requests", "<3,>=2.31", "", "Use_Chardet", "socks")),
        ("pathable (>=0.6.0,<0.7.0)", read("pathable", "<0.7.0,>=0.6.0")),
        ("a===1.0+local", read("a", "===1.0+local")),
        ("a @ https://example.org/a;b.zip ; os_name=='nt'", read("a", "", 'os_name == "nt"')),
        ("a; extra=='Dev_Tools'", read("a", "", 'extra == "dev-tools"', optional=True)),
        ("a; 'dev' == extra", read("a", "", '"dev" == extra', optional=True)),
        ("a; platform_release == 'extra'", read("a", "", 'platform_release == "extra"')),
        ("a; (os_name == 'nt')", read("a", "", 'os_name == "nt"')),
        ("a; ((os_name == 'nt' or sys_platform == 'x'))", read("a", "", 'os_name == "nt" or sys_platform == "x"')),
        ("a; (((os_name=='nt')) and ((extra=='x')))", read("a", "", 'os_name == "nt" and extra == "x"', optional=True)),
        (
            "a; (python_version<'3' or os.name=='nt') and (sys_platform not  in 'x y')",
            read("a", "", '(python_version < "3" or os_name == "nt") and sys_platform not in "x y"'),
        ),
        ("a; what is this, extra?", read("a", "", "what is this, extra?", optional=True)),
        ("a; os_name ==", read("a", "", "os_name ==")),
        ("---", read("")),
    ],
)
def test_a_line_is_taken_apart(line: str, expected: dict[str, Any]) -> None:
    assert read_requirement(line) == expected


@given(st.text() | st.from_regex(r"[a-z]+ ?(\[[a-z,]*\])? ?[<>=0-9.,()]*;[ ()a-z'\"=<>]*"))
def test_no_text_makes_the_reader_raise(text: str) -> None:
    assert set(read_requirement(text)) == {"package", "extras", "version_range", "marker", "is_optional"}


def test_brackets_without_end_end() -> None:
    assert read_requirement("a; " + "(" * 10_000)["marker"].startswith("((")


def test_the_model_reads_the_document_in_the_message() -> None:
    content = "Take the requirement line apart.\n\n<document>\nattrs>=22; extra == 'x'\n</document>"
    answer = RequirementReader().answer({"messages": [{"role": "user", "content": content}]})
    assert answer.text == (
        '{"package":"attrs","extras":[],"version_range":">=22","marker":"extra == \\"x\\"","is_optional":true}'
    )

"""The demo's source: gold from metadata, texts from distributions, and a load that can be repeated."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from dev.demo.declared_licence import acceptable_ids
from dev.demo.distribution_texts import DistributionText, collect_texts, decode_text
from dev.demo.requirement_lines import ParsedRequirement, RequirementLine, collect_requirements
from dev.demo.source import load, load_texts

BSD = "License :: OSI Approved :: BSD License"
MIT = "License :: OSI Approved :: MIT License"


@pytest.mark.parametrize(
    ("expression", "classifiers", "licence", "expected"),
    [
        ("MIT", [], None, {"MIT"}),
        ("Apache-2.0 OR MIT", [], None, {"Apache-2.0", "MIT"}),
        ("MPL-2.0 AND (Apache-2.0 or MIT)", [], None, {"MPL-2.0", "Apache-2.0", "MIT"}),
        ("GPL-2.0-or-later WITH Classpath-exception-2.0", [], None, {"GPL-2.0-or-later"}),
        ("GPL-3.0", [], None, {"GPL-3.0-only", "GPL-3.0-or-later"}),
        ("LGPL-2.1+", [], None, {"LGPL-2.1-or-later"}),
        ("LicenseRef-Proprietary", [], None, set()),
        ("MIT", [BSD], "Apache", {"MIT"}),
        (None, [MIT, "Programming Language :: Python"], "BSD", {"MIT"}),
        (None, [MIT, BSD], None, {"MIT", "BSD-2-Clause", "BSD-3-Clause", "BSD-4-Clause"}),
        (None, ["License :: OSI Approved"], None, set()),
        (None, ["License :: Other/Proprietary License"], "see file", set()),
        (None, [], "The MIT License", {"MIT"}),
        (None, [], "Apache License, Version 2.0", {"Apache-2.0"}),
        (None, [], "MPL-2.0 AND MIT", {"MPL-2.0", "MIT"}),
        (None, [], "Copyright 2020 Somebody\n" * 20, set()),
        (None, [], None, set()),
    ],
)
def test_the_declared_licence_is_what_the_metadata_leaves_open(
    expression: str | None, classifiers: list[str], licence: str | None, expected: set[str]
) -> None:
    assert set(acceptable_ids(expression, classifiers, licence)) == expected


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain\n", "plain\n"),
        (b"\xef\xbb\xbfwith mark", "with mark"),
        (b"a\x00b", "ab"),
        (b"caf\xe9 in Latin-1", "caf� in Latin-1"),
        (b"half a pair \xed\xa0\x80.", "half a pair ���."),
        (b" \n\t\n", None),
        (b"", None),
        (bytes(range(256)) * 20, None),
    ],
)
def test_bytes_become_text_that_postgres_takes_or_nothing(raw: bytes, text: str | None) -> None:
    assert decode_text(raw) == text


def write_distribution(
    site: Path, name: str, metadata: str, files: dict[str, bytes]
) -> importlib.metadata.Distribution:
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{metadata}")
    for path, content in files.items():
        (info / path).parent.mkdir(parents=True, exist_ok=True)
        (info / path).write_bytes(content)
    listed = [f"{info.name}/{path},," for path in ["METADATA", *files, *list(files)[:1], "licenses/GONE-LICENSE"]]
    (info / "RECORD").write_text("\n".join(listed) + "\n")
    return importlib.metadata.Distribution.at(info)


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, DistributionText]:
    metadata = "License-Expression: Apache-2.0 AND MIT\nDescription-Content-Type: text/markdown; x=1\n\n# A.Tool\n"
    files = {
        "licenses/LICENSE": b"the text",
        "licenses/NOTICE": b"a notice",
        "licenses/AUTHORS": b"people",
        "licenses/vendor/part/LICENSE": b"another text",
        "licenses/LICENSE.bin": bytes(range(256)),
        "COPYING": b"the text",
        "licenses.json": b"{}",
        "WHEEL": b"Wheel-Version: 1.0",
    }
    first = write_distribution(tmp_path / "one", "A.Tool", metadata, files)
    shadowed = write_distribution(tmp_path / "two", "a-tool", "\nolder\n", {"LICENSE": b"shadowed"})
    return {text.source_id: text for text in collect_texts([first, shadowed])}


def test_licence_files_notices_and_the_readme_are_collected_once(texts: dict[str, DistributionText]) -> None:
    paths = ["COPYING", "README", "licenses/LICENSE", "licenses/NOTICE", "licenses/vendor/part/LICENSE"]
    assert list(texts) == [f"a-tool/{path}" for path in paths]
    readme = texts["a-tool/README"]
    assert (readme.kind, readme.file_name, readme.body.strip()) == ("readme", "README.md", "# A.Tool")


def test_only_a_distributions_own_licence_files_have_a_declared_licence(texts: dict[str, DistributionText]) -> None:
    declared = {source_id for source_id, text in texts.items() if text.spdx_ids}
    assert declared == {"a-tool/COPYING", "a-tool/licenses/LICENSE"}
    assert texts["a-tool/COPYING"].spdx_ids == ("Apache-2.0", "MIT")


def test_the_version_tells_contents_apart(texts: dict[str, DistributionText]) -> None:
    assert texts["a-tool/COPYING"].source_version != texts["a-tool/licenses/NOTICE"].source_version
    assert texts["a-tool/COPYING"].source_version.startswith("1.0+")


def test_this_environment_gives_the_same_texts_each_time() -> None:
    texts = collect_texts()
    assert texts == collect_texts()
    assert {"licence", "readme"} == {text.kind for text in texts}
    assert all(text.body.strip() and "\x00" not in text.body for text in texts)


def rows(dsn: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn) as connection:
        query = """
            select source_id, source_version, body, loaded_at, held.xmin::text, spdx_ids
            from demo.distribution_text as held
            left join demo.declared_licence using (source_id)
            order by source_id
        """
        return connection.execute(query).fetchall()


def load_these(dsn: str, texts: Iterable[DistributionText]) -> tuple[int, int, int]:
    with psycopg.connect(dsn) as connection:
        summary = load_texts(connection, list(texts))
    return summary.inserted, summary.updated, summary.deleted


def test_a_second_load_changes_no_row(make_database: Callable[..., str]) -> None:
    dsn = make_database()
    first = load(dsn)
    before = rows(dsn)
    second = load(dsn)
    assert rows(dsn) == before
    assert first.licences + first.readmes == len(before) == first.inserted - first.requirements
    assert (second.inserted, second.updated, second.deleted) == (0, 0, 0)
    assert sum(1 for row in before if row[-1]) == first.declared > 0


def test_a_load_touches_only_what_changed_and_deletes_what_vanished(
    make_database: Callable[..., str], texts: dict[str, DistributionText]
) -> None:
    dsn = make_database()
    held = list(texts.values())
    assert load_these(dsn, held) == (len(held), 0, 0)
    before = {row[0]: row for row in rows(dsn)}
    changed = replace(held[0], source_version="2.0+x", body="new", spdx_ids=())
    assert load_these(dsn, [changed, *held[1:-1]]) == (0, 1, 1)
    after = {row[0]: row for row in rows(dsn)}
    assert set(before) - set(after) == {held[-1].source_id}
    assert after[changed.source_id][1:3] == ("2.0+x", "new")
    assert after[changed.source_id][-1] is None
    assert all(after[text.source_id] == before[text.source_id] for text in held[1:-1])


REQUIRED = """Requires-Dist: Ruamel.Yaml[jinja2,oldlibyaml]<0.19,>=0.18; python_version<'3.14' and extra=='Dev_Tools'
Requires-Dist: attrs (>=22.2.0)
Requires-Dist: attrs (>=22.2.0)
Requires-Dist: this is no requirement
"""


@pytest.fixture
def requirements(tmp_path: Path) -> dict[str, RequirementLine]:
    distribution = write_distribution(tmp_path / "three", "A.Tool", REQUIRED, {})
    return {requirement.line: requirement for requirement in collect_requirements([distribution])}


def test_each_requirement_line_is_collected_once_with_its_right_answers(
    requirements: dict[str, RequirementLine],
) -> None:
    assert len(requirements) == 3
    [optional] = [one for line, one in requirements.items() if line.startswith("Ruamel")]
    assert optional.source_id.startswith("a-tool/")
    assert optional.parsed == ParsedRequirement(
        package="ruamel-yaml",
        extras=("jinja2", "oldlibyaml"),
        version_range="<0.19,>=0.18",
        marker='python_version < "3.14" and extra == "dev-tools"',
        is_optional=True,
    )
    assert requirements["attrs (>=22.2.0)"].parsed == ParsedRequirement("attrs", (), ">=22.2.0", "", False)
    assert requirements["this is no requirement"].parsed is None


def test_requirement_lines_are_loaded_and_follow_what_is_installed(
    make_database: Callable[..., str], requirements: dict[str, RequirementLine]
) -> None:
    dsn, held = make_database(), list(requirements.values())
    with psycopg.connect(dsn, autocommit=True) as connection:
        assert load_texts(connection, [], held).inserted == 3
        summary = load_texts(connection, [], held[1:])
        assert (summary.inserted, summary.updated, summary.deleted) == (0, 0, 1)
        lines = connection.execute("select source_id, line from demo.requirement_line").fetchall()
        parsed = connection.execute("select source_id from demo.parsed_requirement").fetchall()
    assert set(lines) == {(one.source_id, one.line) for one in held[1:]}
    assert {row[0] for row in parsed} == {one.source_id for one in held[1:] if one.parsed}

"""docs/guides/publish.md: its settings are sound, its commands and queries do what it says on a real ledger."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
import yaml
from support.pipeline import JOB_YAML, OUTPUT, PROMPT, Pipeline
from support.walkthrough import Typed, steps

from dev.stack.settings import REPOSITORY
from nightmill.cli.commands import main
from nightmill.jobs.check.definition import mistakes_of
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.settings.publish_settings import PublishMode

PAGE = (REPOSITORY / "docs" / "guides" / "publish.md").read_text("utf-8")


def boxes(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def commands() -> Iterator[list[str]]:
    """What the page types, as arguments of `python -m nightmill`."""
    for step in steps(PAGE):
        assert isinstance(step, Typed)
        for line in step.text.splitlines():
            python, flag, module, *arguments = shlex.split(line, comments=True)
            assert [python, flag, module] == ["python", "-m", "nightmill"]
            yield arguments


@pytest.mark.parametrize("box", boxes("yaml"))
def test_what_the_page_writes_into_job_yaml_is_sound(box: str) -> None:
    job, written = yaml.safe_load(JOB_YAML), yaml.safe_load(box)
    job["source"]["columns"] = written.pop("source", {}).get("columns", job["source"]["columns"])
    job["source"]["query"] = "select id, version, tenant, body, must_have from documents"
    files = {
        "job.yaml": yaml.safe_dump(job | written).encode(),
        "prompt.md": PROMPT.encode(),
        "output.py": OUTPUT.encode(),
    }
    assert mistakes_of(JobDefinition("nightly", files)) == []


def test_every_mode_stands_in_the_table() -> None:
    table = PAGE.split("| `publish.mode` |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == [str(mode) for mode in PublishMode]


def test_every_command_of_the_page_exists_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    typed = list(commands())
    assert {one[0] for one in typed} == {"publish", "history", "rollback", "release", "retire"}
    for one in typed:
        with pytest.raises(SystemExit) as ended:
            main([*one, "--help"])
        assert ended.value.code == 0


def test_what_was_published_is_undone_released_and_retired_as_the_page_says(
    shown: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []
    for one in commands():
        if one[0] == "publish":  # tests/end_to_end/test_people_approve.py types it
            continue
        if one[0] == "retire":
            shown.sql("update nightmill.view_definition set job = 'notes' where view_name = 'notes'")
        assert main([*one, *(["--yes"] if one[0] in ("rollback", "retire") else [])]) == 0, capsys.readouterr()
        rows = shown.sql("select to_regclass('results.notes') is not null")[0][0]
        seen.append(shown.sql("select distinct batch_id from results.notes") if rows else "no view")
    assert seen == [[(2,)], [(1,)], [(1,)], "no view"]


def test_the_queries_of_the_page_tell_what_is_shown(shown: Pipeline) -> None:
    (box,) = boxes("sql")
    views, intervals = (shown.sql(query.replace("%", "%%")) for query in box.split(";") if query.strip())
    assert [row[:2] for row in views] == [("notes", 2)]
    assert [row[:3] for row in intervals] == [(None, None, 2)]

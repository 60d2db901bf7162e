"""`python -m nightmill validate`: every mistake of every folder, for people and for scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.pipeline import JOB_YAML, OUTPUT, PROMPT

from nightmill.cli.commands import main


def make(root: Path, name: str, **files: str) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    content = {"job.yaml": JOB_YAML.replace("view: notes", f"view: {name}"), "prompt.md": PROMPT, "output.py": OUTPUT}
    for file, text in (content | {file.replace("__", "."): text for file, text in files.items()}).items():
        (folder / file).write_text(text, "utf-8")
    return folder


def validate(root: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    code = main(["validate", "--jobs", str(root), *options])
    return code, capsys.readouterr().out


def as_json(root: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code, out = validate(root, capsys, "--json")
    return code, json.loads(out)


def test_good_folders_are_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path, "first"), make(tmp_path, "second")
    assert validate(tmp_path, capsys) == (0, "first: valid\nsecond: valid\n")


def test_each_mistake_is_printed_with_a_path_that_can_be_opened_and_its_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path, "good")
    bad = make(tmp_path, "bad", job__yaml=JOB_YAML.replace("model:", "modle:").replace("count: 2", "count: two"))
    code, out = validate(tmp_path, capsys)
    assert code == 1
    assert out.splitlines()[0] == "bad: 2 mistakes"
    assert f"  {bad}/job.yaml:9: provider.modle: unknown key; did you mean 'model'?\n    Known keys here: " in out
    assert f"  {bad}/job.yaml:15: shards.count: expected a whole number, found text" in out
    assert out.splitlines()[-1] == "good: valid"


def test_scripts_get_file_line_key_problem_and_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = make(tmp_path, "bad", checks__yaml="expectations:\n- {type: ExpectColumnToExist, column: titel}\n")
    code, verdicts = as_json(tmp_path, capsys)
    assert code == 1
    (mistake,) = verdicts["bad"]["mistakes"]
    assert mistake.pop("remedy").startswith("Use one of pages, title, or a column that every row has")
    assert verdicts == {"bad": {"valid": False, "mistakes": [mistake], "warnings": []}}
    assert mistake == {
        "file": f"{bad}/checks.yaml",
        "line": 2,
        "key": "ExpectColumnToExist.column",
        "problem": "output.py has no field 'titel'; did you mean 'title'?",
    }


def test_an_argument_of_a_wrong_type_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checks = "expectations:\n- type: ExpectTableRowCountToBeBetween\n  min_value: ten\n"
    bad = make(tmp_path, "bad", checks__yaml=checks)
    code, out = validate(tmp_path, capsys)
    assert code == 1
    place = f"{bad}/checks.yaml:3: ExpectTableRowCountToBeBetween.min_value"
    assert f"  {place}: expected a whole number or a date and time, found text\n    Correct it by " in out


def test_a_warning_is_shown_and_fails_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make(tmp_path, "odd", prompt__md="Summarise {{ bdy }}", checks__yml="expectations: []")
    code, verdicts = as_json(tmp_path, capsys)
    assert code == 0
    assert [(one["file"], one["problem"]) for one in verdicts["odd"]["warnings"]] == [
        (f"{folder}/prompt.md", "the document is not in the prompt: source.columns.text is 'body'"),
        (f"{folder}/prompt.md", "no column of source.columns; did you mean 'body'?"),
        (f"{folder}/checks.yml", "is not read; did you mean 'checks.yaml'?"),
    ]
    assert "odd: valid\n  warning: " in validate(tmp_path, capsys)[1]


def test_every_missing_file_is_named_and_a_file_of_a_similar_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(tmp_path, "bare")
    (folder / "output.py").unlink()
    (folder / "prompt.md").rename(folder / "prompts.md")
    _, verdicts = as_json(tmp_path, capsys)
    assert [(one["file"], one["problem"]) for one in verdicts["bare"]["mistakes"]] == [
        (f"{folder}/prompt.md", "is missing; did you mean to name 'prompts.md' so?"),
        (f"{folder}/output.py", "is missing"),
    ]


def test_two_jobs_of_one_view_and_a_misnamed_job_yaml_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path, "first"), make(tmp_path, "second", job__yaml=JOB_YAML.replace("view: notes", "view: first"))
    (make(tmp_path, "third") / "job.yaml").rename(tmp_path / "third" / "job.yml")
    code, verdicts = as_json(tmp_path, capsys)
    assert code == 1
    assert verdicts["(folders)"]["mistakes"][0]["problem"] == f"{tmp_path}/third/job.yml is not read"
    assert verdicts["first"]["valid"]
    assert verdicts["second"]["mistakes"][0]["problem"] == "the job 'first' publishes 'first' too"


WINDOW = "query: select id, version, tenant, body from documents where at >= %(data_interval_start)s"


@pytest.mark.parametrize(("more", "warned"), [("", True), (" and at < %(data_interval_end)s", True), (None, False)])
def test_a_query_of_one_interval_is_warned_of_with_its_line_because_the_view_shows_one_night(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str | None, warned: bool
) -> None:
    query = WINDOW + more if more is not None else WINDOW.replace("at >= %(data_interval_start)s", "at <= now()")
    make(
        tmp_path, "nightly", job__yaml=JOB_YAML.replace("query: select id, version, tenant, body from documents", query)
    )
    code, verdicts = as_json(tmp_path, capsys)
    assert code == 0
    warnings = [one for one in verdicts["nightly"]["warnings"] if "interval" in one["problem"]]
    assert bool(warnings) == warned
    if warned:
        assert warnings[0]["line"] == 5
        assert "each run replaces the view" in warnings[0]["problem"]
        assert "Leave the interval out" in warnings[0]["remedy"]
        assert "publish.mode to by_interval" in warnings[0]["remedy"]


def test_a_job_that_follows_a_view_which_nobody_publishes_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = "dag:\n  after_assets:\n    any:\n      - view: frist\n      - view: first\n      - name: orders\n"
    make(tmp_path, "first", job__yaml=JOB_YAML.replace("view: notes", "view: first"))
    make(tmp_path, "second", job__yaml=JOB_YAML + after), make(tmp_path, "bad", job__yaml="broken: [")
    _, verdicts = as_json(tmp_path, capsys)
    (warning,) = (one for one in verdicts["second"]["warnings"] if "after_assets" in (one["key"] or ""))
    assert warning["key"] == "dag.after_assets.any.0.view"
    assert warning["line"] == JOB_YAML.count("\n") + 4
    assert warning["problem"] == "no job folder here publishes the view 'frist'; did you mean 'first'?"


def test_one_job_is_checked_by_its_name_and_a_broken_neighbour_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path, "good"), make(tmp_path, "bad", job__yaml="broken: [")
    assert validate(tmp_path, capsys, "good") == (0, "good: valid\n")
    assert validate(tmp_path, capsys, "bad")[0] == 1
    assert main(["validate", "--jobs", str(tmp_path), "godo"]) == 1
    said = capsys.readouterr().err
    assert "There is no job folder 'godo' (did you mean 'good'?)" in said
    assert "remedy: Use one of bad, good" in said


def test_a_named_job_is_told_of_a_neighbour_with_the_same_view(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path, "first"), make(tmp_path, "second", job__yaml=JOB_YAML.replace("view: notes", "view: first"))
    code, out = validate(tmp_path, capsys, "second")
    assert (code, "the job 'first' publishes 'first' too" in out) == (1, True)

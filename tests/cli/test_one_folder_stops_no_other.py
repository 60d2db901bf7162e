"""Folders that exit, loop or ask for all memory beside good ones: each command goes through all of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.hostile_folders import write_some
from support.pipeline import Pipeline

from nightmill.cli.commands import main
from nightmill.jobs.output import job_code
from nightmill.upkeep.maintenance import live_jobs

GOOD = {"a_good_one", "z_good_one"}


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What is wrong with each hostile folder below `tmp_path/mixed`."""
    monkeypatch.setattr(job_code, "LIMIT_S", 1.0)
    monkeypatch.delenv("NIGHTMILL_JOBS_PATH", raising=False)
    return write_some(tmp_path / "mixed")


def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str, str]:
    code = main([*command, "--jobs", str(tmp_path / "mixed")])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_validate_names_each_and_finds_the_others_valid(
    said: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(tmp_path, capsys, "validate", "--json")
    verdicts = json.loads(out)
    assert code == 1
    assert {name for name, one in verdicts.items() if one["valid"]} == GOOD
    _, out, _ = run(tmp_path, capsys, "validate")
    for name, words in said.items():
        assert all(one["file"] and one["remedy"] for one in verdicts[name]["mistakes"])
        assert f"{tmp_path}/mixed/{name}/" in out
        assert words in out


def test_validate_shows_a_folder_whose_name_is_no_utf_8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mixed" / os.fsdecode(b"caf\xe9")
    folder.mkdir(parents=True)
    (folder / "job.yaml").write_text("description: x")
    code, out, _ = run(tmp_path, capsys, "validate")
    assert code == 1
    assert "caf\\udce9: " in out


def test_apply_makes_the_tables_of_the_others(
    said: dict[str, str],
    pipeline: Pipeline,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_OWNER", pipeline.admin_dsn)
    wide = tmp_path / "mixed" / "m_too_wide"  # for a table of Postgres
    wide.mkdir()
    for file in (tmp_path / "mixed" / "a_good_one").iterdir():
        (wide / file.name).write_text(file.read_text().replace("view: a_good_one", "view: m_too_wide"))
    (wide / "output.py").write_text(
        "from pydantic import create_model\n"
        "Output = create_model('Output', **{f'f{n}': (str, ...) for n in range(1700)})"
    )
    code, out, _ = run(tmp_path, capsys, "apply", "--json")
    done = {one["job"]: one for one in json.loads(out)}
    assert code == 1
    assert {name for name, one in done.items() if one["outcome"] == "created"} == GOOD
    assert all(said[name] in done[name]["fault"] for name in said)
    assert "its table and view cannot be made (TooManyColumns, SQLSTATE 54011)" in done["m_too_wide"]["fault"]


def test_doctor_names_each_and_looks_at_the_others(
    said: dict[str, str],
    pipeline: Pipeline,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", pipeline.writer_dsn)
    monkeypatch.setenv("AIRFLOW_CONN_SOURCE", pipeline.admin_dsn)
    monkeypatch.setenv("NIGHTMILL_OBJECT_STORE", f"file://{pipeline.store}")
    code, out, _ = run(tmp_path, capsys, "doctor", "--json")
    found = {one["check"]: one for one in json.loads(out)}
    assert code == 1
    for name in GOOD:
        assert found[f"{name}: job folder"]["status"] == found[f"{name}: source"]["status"] == "ok"
    for name, words in said.items():
        assert words in found[f"{name}: job folder"]["seen"]


def test_estimate_prices_a_good_one_beside_them_and_says_what_is_wrong_with_them(
    said: dict[str, str],
    pipeline: Pipeline,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", pipeline.writer_dsn)
    monkeypatch.setenv("AIRFLOW_CONN_SOURCE", pipeline.admin_dsn)
    monkeypatch.setenv("NIGHTMILL_OBJECT_STORE", f"file://{pipeline.store}")
    assert run(tmp_path, capsys, "estimate", "z_good_one")[0] == 0
    for name, words in said.items():
        code, out, error = run(tmp_path, capsys, "estimate", name)
        assert (code, out) == (1, "")
        assert words in error
        assert "remedy: " in error


def test_maintenance_finds_the_live_rules_of_the_others(said: dict[str, str], tmp_path: Path) -> None:
    assert live_jobs(tmp_path / "mixed").keys() >= GOOD

"""Job folders: where they are found and what is said about broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.ledger import JOB_YAML, OUTPUT

from nightmill.domain.errors import ConfigError
from nightmill.jobs import job_folders


def make(root: Path, name: str) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "job.yaml").write_text(JOB_YAML % name, "utf-8")
    (folder / "prompt.md").write_text("{{ body }}", "utf-8")
    (folder / "output.py").write_text(OUTPUT, "utf-8")
    return folder


def test_foreign_directories_are_searched_after_the_projects_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for root, name in (("own", "first"), ("foreign", "second"), ("other", "third")):
        make(tmp_path / root, name)
    monkeypatch.setenv("NIGHTMILL_JOBS_PATH", f"{tmp_path / 'foreign'}:{tmp_path / 'nowhere'}::{tmp_path / 'other'}")
    found = job_folders.find(job_folders.roots(tmp_path / "own"))
    assert found.folders == {
        "first": tmp_path / "own" / "first",
        "second": tmp_path / "foreign" / "second",
        "third": tmp_path / "other" / "third",
    }
    assert [str(fault) for fault in found.faults] == [
        f"{tmp_path / 'nowhere'} is no directory. Remedy: Correct NIGHTMILL_JOBS_PATH: it lists directories of job "
        "folders."
    ]
    monkeypatch.delenv("NIGHTMILL_JOBS_PATH")
    assert job_folders.roots(tmp_path / "own") == [tmp_path / "own"]


def test_only_folders_with_a_job_yaml_are_jobs(tmp_path: Path) -> None:
    make(tmp_path, "real")
    (tmp_path / "notes").mkdir()
    (tmp_path / "job.yaml").write_text("not in a folder", "utf-8")
    assert list(job_folders.find([tmp_path]).folders) == ["real"]


def test_of_two_jobs_of_one_name_the_first_stays_and_the_fault_names_both(tmp_path: Path) -> None:
    make(tmp_path / "a", "twice"), make(tmp_path / "b", "twice"), make(tmp_path / "b", "other")
    found = job_folders.find([tmp_path / "a", tmp_path / "b"])
    assert found.folders == {"twice": tmp_path / "a" / "twice", "other": tmp_path / "b" / "other"}
    (fault,) = found.faults
    assert fault.cause == f"{tmp_path / 'b' / 'twice'}: the job 'twice' stands in {tmp_path / 'a' / 'twice'} too."


def test_a_folder_is_read_as_it_stands_now(tmp_path: Path) -> None:
    folder = make(tmp_path, "job")
    first = job_folders.read(folder)
    (folder / "checks.yaml").write_text("expectations: []", "utf-8")
    second = job_folders.read(folder)
    first.check(), second.check()
    assert first.files.keys() == {"job.yaml", "prompt.md", "output.py"}
    assert second.files.keys() == {"job.yaml", "prompt.md", "output.py", "checks.yaml"}
    assert first.folder_hash != second.folder_hash


@pytest.mark.parametrize("name", ["job.yaml", "prompt.md", "output.py"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = make(tmp_path, "job")
    (folder / name).unlink()
    with pytest.raises(ConfigError, match=rf"/job/{name}: is missing.*job.yaml, prompt.md, output.py"):
        job_folders.read(folder)


@pytest.mark.parametrize("name", ["job.yaml", "prompt.md", "output.py", "checks.yaml"])
def test_a_file_that_is_not_utf8_is_named_with_the_byte(tmp_path: Path, name: str) -> None:
    folder = make(tmp_path, "job")
    (folder / name).write_bytes("# Straße".encode("latin-1"))
    with pytest.raises(ConfigError, match=rf"/job/{name}:1: is not UTF-8 \(byte 6\)"):
        job_folders.read(folder)


def test_one_folder_by_name_is_the_one_that_a_look_at_all_of_them_finds(tmp_path: Path) -> None:
    for folder in ("a/twice", "b/twice", "b/only"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "job.yaml").touch()
    (tmp_path / "a" / "empty").mkdir()
    roots = [tmp_path / "a", tmp_path / "gone", tmp_path / "b"]
    assert {name: job_folders.named(roots, name) for name in ("twice", "only")} == job_folders.find(roots).folders
    assert job_folders.named(roots, "empty") is None

"""A folder that was checked and found good is not checked again, and nothing but that is remembered."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.pipeline import JOB_YAML, OUTPUT, PROMPT

from nightmill.domain.errors import ConfigError
from nightmill.jobs.contract import JobDefinition
from nightmill.orchestration import checked_folders, dag_factory
from nightmill.orchestration.checked_folders import CheckedFolders

FILES = {"job.yaml": JOB_YAML.encode(), "prompt.md": PROMPT.encode(), "output.py": OUTPUT.encode()}
GOOD = JobDefinition("notes", FILES)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NIGHTMILL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(jobs_folder: Path) -> Path:
    for name, content in FILES.items():
        (jobs_folder / "notes").mkdir(exist_ok=True)
        (jobs_folder / "notes" / name).write_bytes(content)
    return jobs_folder / "notes"


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the folders that are checked from here on."""
    names: list[str] = []
    check = dag_factory.check_definition

    def counting(definition: JobDefinition) -> None:
        names.append(definition.name)
        check(definition)

    monkeypatch.setattr(dag_factory, "check_definition", counting)
    return names


def parse(root: Path) -> list[str]:
    """Both DAG files, as two processes of one cycle would; the ids of the jobs' DAGs."""
    found = [dag.dag_id for dag in dag_factory.job_dags(root / "none")]
    dag_factory.refuse_broken_jobs(root / "none")
    return found


def test_an_unchanged_folder_is_checked_once_whatever_parses_it(folder: Path, checked: list[str]) -> None:
    assert [parse(folder.parent) for _ in range(3)] == [["nightmill_notes"]] * 3
    assert checked == ["notes"]


@pytest.mark.parametrize("file", ["job.yaml", "prompt.md", "output.py", "checks.yaml"])
def test_a_change_of_any_file_is_checked(folder: Path, checked: list[str], file: str) -> None:
    parse(folder.parent)
    with (folder / file).open("a") as content:
        content.write("\n# another line\n")
    parse(folder.parent)
    assert checked == ["notes", "notes"]


def test_a_broken_folder_is_told_at_every_parse_until_it_is_mended(folder: Path, checked: list[str]) -> None:
    good = (folder / "job.yaml").read_text()
    (folder / "job.yaml").write_text(good.replace("model:", "modle:"))
    for _ in range(2):
        assert list(dag_factory.job_dags(folder.parent / "none")) == []
        with pytest.raises(ConfigError, match=r"provider\.modle"):
            dag_factory.refuse_broken_jobs(folder.parent / "none")
    (folder / "job.yaml").write_text(good)
    assert parse(folder.parent) == ["nightmill_notes"]
    assert checked == ["notes"] * 5


def test_a_good_folder_of_which_airflow_makes_no_dag_any_more_is_told_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse(folder.parent)

    def refuse(*_: Any) -> None:
        raise ConfigError("Airflow has another rule now.", "Follow it.")

    monkeypatch.setattr(dag_factory, "schedule_of", refuse)
    assert list(dag_factory.job_dags(folder.parent / "none")) == []
    with pytest.raises(ConfigError, match="another rule"):
        dag_factory.refuse_broken_jobs(folder.parent / "none")


def test_a_running_task_neither_asks_nor_leaves_a_mark(
    folder: Path, cache: Path, checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "nightmill_notes")
    assert [dag.dag_id for dag in dag_factory.job_dags(folder.parent / "none")] == ["nightmill_notes"]
    assert checked == []
    assert not cache.exists()


def test_another_name_another_content_and_another_code_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    CheckedFolders().add(GOOD)
    assert GOOD in CheckedFolders()
    assert JobDefinition("letters", FILES) not in CheckedFolders()
    assert JobDefinition("notes", FILES | {"checks.yaml": b""}) not in CheckedFolders()
    monkeypatch.setattr(checked_folders, "_code", lambda: "of-tomorrow")
    assert GOOD not in CheckedFolders()


def test_bytes_that_move_from_one_file_to_the_next_are_another_content() -> None:
    CheckedFolders().add(JobDefinition("notes", {"job.yaml": b"ab", "output.py": b"c"}))
    assert JobDefinition("notes", {"job.yaml": b"a", "output.py": b"bc"}) not in CheckedFolders()


def test_only_this_user_can_write_marks(cache: Path) -> None:
    CheckedFolders().add(GOOD)
    assert {path.stat().st_mode & 0o077 for path in cache.rglob("*")} == {0}


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_directory_that_others_can_write_to_is_not_used(cache: Path, mode: int) -> None:
    own = cache / f"nightmill-{os.geteuid()}"
    own.mkdir(parents=True)
    own.chmod(mode)
    CheckedFolders().add(GOOD)
    assert list(own.iterdir()) == []
    assert GOOD not in CheckedFolders()


def test_a_link_is_not_followed(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    cache.mkdir()
    (cache / f"nightmill-{os.geteuid()}").symlink_to(tmp_path / "elsewhere")
    CheckedFolders().add(GOOD)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("place", ["/dev/null", "/proc/nowhere"])
def test_where_nothing_can_be_written_everything_is_checked(
    folder: Path, checked: list[str], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTMILL_CACHE", place)
    assert [parse(folder.parent) for _ in range(2)] == [["nightmill_notes"]] * 2
    assert checked == ["notes"] * 4


def test_a_user_whose_cache_cannot_be_written_uses_the_directory_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NIGHTMILL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    monkeypatch.setattr(checked_folders.tempfile, "gettempdir", lambda: str(tmp_path))
    CheckedFolders().add(GOOD)
    assert GOOD in CheckedFolders()
    assert len(list((tmp_path / f"nightmill-{os.geteuid()}").glob("checked/*/*"))) == 1


def test_many_writers_at_once_leave_one_mark(cache: Path) -> None:
    threads = [threading.Thread(target=lambda: CheckedFolders().add(GOOD)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert GOOD in CheckedFolders()
    assert len(list(cache.glob("*/checked/*/*"))) == 1


def test_marks_of_other_versions_are_forgotten_after_a_month(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for code, days in (("old", 31), ("recent", 29)):
        monkeypatch.setattr(checked_folders, "_code", lambda code=code: code)
        CheckedFolders().add(GOOD)
        (marks,) = cache.glob(f"*/checked/{code}")
        then = time.time() - days * 24 * 3600
        os.utime(marks, (then, then))
    monkeypatch.setattr(checked_folders, "_code", lambda: "new")
    CheckedFolders().add(GOOD)
    assert {path.name for path in cache.glob("*/checked/*")} == {"recent", "new"}

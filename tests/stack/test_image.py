"""What the Dockerfile copies, by the rules of .dockerignore: everything that Airflow needs, and nothing of the demo."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TREES = ("include", "dags", "plugins")


def ignored(path: str, rules: list[str]) -> bool:
    """As Docker does: a rule covers what lies below it, and the last one that matches counts."""
    verdict = False
    for rule in rules:
        pattern = rule.removeprefix("!").removeprefix("**/")
        parts = path.split("/")
        if rule.removeprefix("!").startswith("**/"):
            hit = any(fnmatch(part, pattern) for part in parts)
        else:
            depth = pattern.count("/") + 1
            hit = len(parts) >= depth and all(map(fnmatch, parts[:depth], pattern.split("/")))
        if hit:
            verdict = not rule.startswith("!")
    return verdict


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder /opt/airflow of the image."""
    root = tmp_path_factory.mktemp("airflow")
    copied = re.findall(r"^COPY --chown=airflow:0 (\S+) /opt/airflow/", (REPOSITORY / "Dockerfile").read_text(), re.M)
    assert set(TREES) <= set(copied)
    lines = (REPOSITORY / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    for tree in TREES:
        for file in (REPOSITORY / tree).rglob("*"):
            path = str(file.relative_to(REPOSITORY))
            if file.is_file() and not ignored(path, rules):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, root / path)
    for file in ("requirements.txt", "LICENSE"):
        assert not ignored(file, rules)
    return root


def run(image: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """In the image, whose own code is the only one to be found."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "NIGHTMILL"))}
    options = [
        sys.executable,
        "-c",
        f"import sys; sys.path[:] = [one for one in sys.path if one not in ('{REPOSITORY}', '{REPOSITORY}/include')]",
    ]
    code = f"; sys.path.insert(0, 'include'); sys.argv = {['nightmill', *command]!r}; import runpy; "
    code += "runpy.run_module('nightmill', run_name='__main__', alter_sys=True)"
    return subprocess.run(
        [*options[:2], options[2] + code], cwd=image, env=env | {"AIRFLOW_HOME": str(image / "home")},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_plugins_are_in_the_image_because_cancelling_by_a_click_needs_them(image: Path) -> None:
    names = {path.name for path in (REPOSITORY / "plugins").glob("*.py")}
    assert names
    assert {path.name for path in (image / "plugins").glob("*.py")} == names
    assert (image / "include" / "nightmill" / "console" / "templates" / "batch.html").exists()


def test_no_demo_job_is_in_the_image_so_that_doctor_and_validate_look_at_the_users_only(image: Path) -> None:
    assert {path.name for path in (image / "dags").glob("*.py")} == {
        path.name for path in (REPOSITORY / "dags").glob("*.py")
    }
    assert list(image.glob("dags/jobs/*/job.yaml")) == []
    assert not (image / "dev").exists()
    done = run(image, "validate", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {}), done.stderr


def test_the_packages_of_the_image_hold_nothing_of_tests_or_of_the_local_stack() -> None:
    texts = {name: (REPOSITORY / name).read_text("utf-8") for name in ("requirements-dev.in", "requirements.txt")}
    only_here = set(re.findall(r"^[a-z][\w-]*", texts["requirements-dev.in"], re.MULTILINE | re.IGNORECASE))
    of_airflow = {"packaging", "psutil", "python-multipart", "uvicorn"}  # the stack imports them too
    in_image = set(re.findall(r"^([a-z0-9._-]+)==", texts["requirements.txt"], re.MULTILINE))
    assert only_here & in_image == of_airflow
    assert {"anthropic", "apache-airflow", "great-expectations", "openai", "psycopg", "s3fs"} <= in_image


def test_a_job_of_ones_own_goes_into_the_image(image: Path) -> None:
    rules = [line for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert not ignored("dags/jobs/my_job/job.yaml", rules)


def test_every_command_of_the_image_says_what_it_needs_without_the_local_stack(image: Path) -> None:
    for command in ("doctor", "status"):
        done = run(image, command)
        assert "Traceback" not in done.stderr, done.stderr

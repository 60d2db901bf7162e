"""The wheel in a fresh environment, as somebody installs it who has an Airflow on Postgres: first plain Airflow, then
nightmill without extras, then the extras that the demo job needs. At last that job runs to its view, by the real
scheduler.

The environment is a real one, and shares nothing with the checkout: uv fills it from the cache of `make setup`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from configparser import ConfigParser
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import psycopg
import pytest

from dev.demo import source
from dev.demo.distribution_texts import collect_texts
from dev.demo.run import run_job
from dev.stack.settings import EXAMPLES, REPOSITORY, StackSettings
from dev.stack.stack import Running, Stack
from nightmill.jobs.settings.adapters import BUILT_IN, GROUP

JOB = "license_audit"
TEXTS = 60
UV = Path(sys.executable).with_name("uv")
LOCKED = REPOSITORY / "requirements.txt"
PLUGINS = ["nightmill_access", "nightmill_console", "nightmill_listener"]
DAG_FILES = {
    "nightmill_jobs": "globals().update(job_dags_of(__file__))",
    "nightmill_ops": "globals().update(operations_dags_of(__file__))",
    "nightmill_broken_jobs": "refuse_broken_jobs(__file__)",
}
IMPORT_ALL = """
import importlib, json, pkgutil, nightmill
missing = {}
for module in pkgutil.walk_packages(nightmill.__path__, "nightmill."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as fault:
        missing[module.name] = fault.name
print(json.dumps([nightmill.__file__, missing]))
"""


@dataclass(frozen=True, slots=True)
class Site:
    """A directory with an environment of its own, and a folder of DAGs."""

    root: Path

    @property
    def bin(self) -> Path:
        return self.root / "environment" / "bin"

    @property
    def dags(self) -> Path:
        return self.root / "dags"

    def install(self, *requirements: str) -> None:
        """By the locked versions, as README.md tells users to."""
        uv("pip", "install", "--quiet", "--python", self.bin / "python", "--constraint", LOCKED, *requirements)

    def run(self, *command: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """A program of the environment, which is told nothing of the checkout."""
        mine = {
            "PATH": f"{self.bin}:{os.defpath}",
            "HOME": str(self.root),
            "AIRFLOW_HOME": str(self.root / "airflow"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        }
        return subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=self.root,
            env=mine | (env or {}),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def python(self, code: str) -> str:
        done = self.run("python", "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout


def uv(*arguments: object) -> None:
    done = subprocess.run([UV, *map(str, arguments)], capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`python -m build`: a source distribution, and the wheel from that."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(REPOSITORY)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,) = out.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        assert any(name.endswith("/CHANGELOG.md") for name in packed.getnames())
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """An environment with plain Airflow, and DAG files as README.md shows them beside a copy of the demo job."""
    made = Site(Path(tempfile.mkdtemp(prefix="nightmill-wheel-")))
    uv("venv", "--quiet", "--python", sys.executable, made.root / "environment")
    made.install(f"apache-airflow[postgres]=={version('apache-airflow')}")
    shutil.copytree(EXAMPLES / JOB, made.dags / "jobs" / JOB)
    job_yaml = made.dags / "jobs" / JOB / "job.yaml"
    text = job_yaml.read_text("utf-8")
    assert "shards: {count: 8}" in text
    job_yaml.write_text(text.replace("shards: {count: 8}", "shards: {count: 2}"), "utf-8")
    page = (REPOSITORY / "docs" / "start" / "install.md").read_text("utf-8")
    assert (REPOSITORY / "dags" / "nightmill_jobs.py").read_text() in (REPOSITORY / "README.md").read_text("utf-8")
    for name, last_line in DAG_FILES.items():
        block = next(one for one in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if last_line in one)
        assert len(block.splitlines()) <= 4
        (made.dags / f"{name}.py").write_text(block)
        assert (REPOSITORY / "dags" / f"{name}.py").read_text().split() == block.split()
    yield made
    shutil.rmtree(made.root)


@pytest.fixture(scope="module")
def without_extras(site: Site, wheel: Path) -> Site:
    site.install(f"nightmill @ {wheel.as_uri()}")
    return site


@pytest.fixture(scope="module")
def installed(without_extras: Site, wheel: Path) -> Site:
    """With what the demo job needs."""
    without_extras.install(f"nightmill[openai,gx] @ {wheel.as_uri()}")
    return without_extras


@pytest.fixture(scope="module")
def running(installed: Site) -> Iterator[Running]:
    """Airflow from that environment. Postgres and the practice provider are the checkout's."""
    settings = StackSettings(
        home=installed.root / "stack",
        dags_folder=installed.dags,
        airflow_python=installed.bin / "python",
        batch_seconds=1,
        ready_timeout_s=300,  # its first start compiles all of Airflow
        airflow_overrides={"AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300"},  # the files do not change
    )
    stack = Stack(settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)
        patch.delenv("NIGHTMILL_JOBS_PATH", raising=False)
        try:
            yield stack.up()
        finally:
            stack.down()


def test_every_file_that_the_code_reads_is_in_the_wheel(wheel: Path) -> None:
    folder = REPOSITORY / "include"
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    ours = {str(path.relative_to(folder)) for path in files}
    with ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    assert names == ours
    assert {Path(name).suffix for name in names} >= {".py", ".sql", ".html", ".txt", ".yaml"}


def test_the_wheel_has_the_command_the_plugins_and_every_adapter_as_entry_points(wheel: Path) -> None:
    with ZipFile(wheel) as packed:
        (file,) = (name for name in packed.namelist() if name.endswith(".dist-info/entry_points.txt"))
        declared = ConfigParser()
        declared.optionxform = str  # type: ignore[assignment,method-assign]
        declared.read_string(packed.read(file).decode())
    assert dict(declared[GROUP]) == BUILT_IN
    assert sorted(declared["airflow.plugins"]) == PLUGINS
    assert list(declared["console_scripts"]) == ["nightmill"]


def test_without_extras_only_the_adapters_lack_a_library_and_whatever_needs_another_names_its_extra(
    without_extras: Site,
) -> None:
    where, missing = json.loads(without_extras.python(IMPORT_ALL).splitlines()[-1])
    assert Path(where).is_relative_to(without_extras.root)
    assert all(name.startswith("nightmill.providers.") for name in missing), missing
    assert missing
    checked = without_extras.run("nightmill", "validate")
    assert checked.returncode == 1
    assert f"{JOB}/checks.yaml:2: expectations: Great Expectations" in checked.stdout
    assert "pip install 'nightmill[gx]'" in checked.stdout
    database = {"AIRFLOW_CONN_NIGHTMILL_DB": "postgres://nobody@127.0.0.1:1/none"}
    doctor = without_extras.run("nightmill", "doctor", env=database | {"NIGHTMILL_OBJECT_STORE": "s3://bucket/x"})
    assert doctor.returncode == 1
    assert "pip install 'nightmill[s3]'" in doctor.stdout
    provider = without_extras.python(
        "from nightmill.domain.errors import ConfigError\n"
        "from nightmill.providers.registry import adapter\n"
        "try: adapter('openai')\n"
        "except ConfigError as fault: print(fault)\n"
    )
    assert "pip install 'nightmill[openai]'" in provider


def test_airflow_lists_each_plugin_once_even_beside_a_plugins_folder_of_the_checkout(installed: Site) -> None:
    folder = {"AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins")}
    done = installed.run("airflow", "plugins", "--output", "json", env=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert sorted(one["name"] for one in found) == PLUGINS
    assert all(one["source"].startswith("nightmill==") for one in found)
    assert "already registered" not in done.stdout + done.stderr


@pytest.mark.timeout(1200)  # with the set-up of its fixtures
def test_the_demo_job_runs_to_its_view_on_an_airflow_that_has_only_the_wheel(
    installed: Site, running: Running, capfd: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(running.server.dsn("nightmill")) as conn:
        source.load_texts(conn, [text for text in collect_texts() if len(text.body) < 20_000][:TEXTS])
    assert run_job(running, JOB) == 0, capfd.readouterr()
    with psycopg.connect(running.server.dsn("nightmill")) as conn:
        assert conn.execute(f"select count(*) from results.{JOB}").fetchone() == (TEXTS,)
    with running.client() as client:
        assert client.plugins() == set(PLUGINS)
        assert client.import_errors() == []
    doctor = installed.run("nightmill", "doctor", "--json", "--jobs", "dags/jobs", env=running.command_env())
    assert doctor.returncode == 0, doctor.stdout
    assert installed.run("nightmill", "status", env=running.command_env()).returncode == 0

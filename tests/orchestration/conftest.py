"""Airflow in this process: its home is a throw-away directory, set before anything imports Airflow."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from support.pipeline_fixtures import pipeline, simulator

__all__ = ["pipeline", "simulator"]

_home = tempfile.mkdtemp(prefix="nightmill-test-airflow-")
atexit.register(shutil.rmtree, _home, ignore_errors=True)
os.environ["AIRFLOW_HOME"] = _home
os.environ["NIGHTMILL_CACHE"] = _home
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "false"
os.environ["AIRFLOW__CORE__UNIT_TEST_MODE"] = "false"


@pytest.fixture(autouse=True)
def _no_foreign_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTMILL_JOBS_PATH", raising=False)


@pytest.fixture
def jobs_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A foreign directory that NIGHTMILL_JOBS_PATH names."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    monkeypatch.setenv("NIGHTMILL_JOBS_PATH", str(folder))
    return folder

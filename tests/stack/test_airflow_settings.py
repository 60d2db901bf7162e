"""The environment that Airflow's processes get."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import yaml

from dev.stack.airflow_settings import OPTIONS, airflow_environment
from dev.stack.postgres import Server
from dev.stack.private_files import SecretBook
from dev.stack.settings import StackSettings

PORTS = {"api": 1001, "simulator": 1002, "worker_log": 1003, "trigger_log": 1004}


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setenv("AIRFLOW_CONN_MINE", "{}")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    secrets = SecretBook(tmp_path / "secrets.json")
    settings = StackSettings(home=tmp_path, airflow_overrides={"AIRFLOW__CORE__PARALLELISM": "3"})
    return airflow_environment(settings, Server(tmp_path, 1000, secrets), secrets, PORTS)


def test_another_airflows_settings_do_not_leak_in_but_connections_stay(env: dict[str, str]) -> None:
    assert env["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert env["AIRFLOW_CONN_MINE"] == "{}"
    assert "PYTHONDONTWRITEBYTECODE" not in env


def test_overrides_win(env: dict[str, str]) -> None:
    assert env["AIRFLOW__CORE__PARALLELISM"] == "3"


def test_every_option_exists_in_the_installed_airflow(env: dict[str, str]) -> None:
    spec = importlib.util.find_spec("airflow")  # found, not imported: importing it makes a directory in HOME
    assert spec is not None and spec.origin is not None
    known = yaml.safe_load((Path(spec.origin).parent / "config_templates" / "config.yml").read_text())
    names = [name.removeprefix("AIRFLOW__").lower().split("__") for name in env if name.startswith("AIRFLOW__")]
    assert len(names) > len(OPTIONS)
    assert [name for name in names if name[1] not in known[name[0]]["options"]] == []


def test_connections_carry_each_role_and_the_provider_its_address(env: dict[str, str]) -> None:
    ledger = json.loads(env["AIRFLOW_CONN_NIGHTMILL_DB"])
    assert (ledger["login"], ledger["schema"], ledger["port"]) == ("nightmill_writer", "nightmill", 1000)
    assert json.loads(env["AIRFLOW_CONN_NIGHTMILL_OWNER"])["login"] == "nightmill_owner"
    assert json.loads(env["AIRFLOW_CONN_NIGHTMILL_PROVIDER"])["host"] == "http://127.0.0.1:1002/v1"


def test_nothing_reports_home(env: dict[str, str]) -> None:
    assert (env["GX_ANALYTICS_ENABLED"], env["DO_NOT_TRACK"], env["SCARF_ANALYTICS"]) == ("false", "1", "false")

"""The environment of the local stack's Airflow 3.3 processes.

Names and defaults: airflow/config_templates/config.yml of apache-airflow-core 3.3.2.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from dev.stack.ports import LOOPBACK
from dev.stack.postgres import Server
from dev.stack.private_files import SecretBook, new_fernet_key, new_signing_key, write_private
from dev.stack.settings import StackSettings

ADMIN_USER = "admin"
NO_TELEMETRY = {"GX_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1", "SCARF_ANALYTICS": "false"}

OWNER, WRITER, READER, DEMO = "nightmill_owner", "nightmill_writer", "nightmill_reader", "nightmill_demo"
CONSOLE = "nightmill_console"
LEDGER_LOGINS = (OWNER, WRITER, READER, CONSOLE, DEMO)
AIRFLOW_DATABASE, LEDGER_DATABASE = "airflow", "nightmill"
CONNECTION_LOGINS = {
    "nightmill_db": WRITER,
    "nightmill_owner": OWNER,
    "nightmill_console": CONSOLE,
    "nightmill_demo_source": DEMO,
}

OPTIONS: dict[str, str] = {
    "CORE__EXECUTOR": "LocalExecutor",
    "CORE__LOAD_EXAMPLES": "false",
    "CORE__MP_START_METHOD": "fork",  # workers share the scheduler's memory
    "CORE__AUTH_MANAGER": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
    "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{ADMIN_USER}:admin",
    "API__HOST": LOOPBACK,
    "API__WORKERS": "1",
    "API__INSTANCE_NAME": "nightmill (local)",
    # A crashed task is noticed in 20 s, not in 300: it must miss several beats of 5 s first.
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "5",
    "WORKERS__MIN_HEARTBEAT_INTERVAL": "5",
    "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "20",
    # When the scheduler and the triggerer count as gone, for adoption and for /monitor/health.
    "SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
    "TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "20",
    "DAG_PROCESSOR__REFRESH_INTERVAL": "10",
    "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "10",
    "DAG_PROCESSOR__PARSING_PROCESSES": "1",
    "LOGGING__COLORED_CONSOLE_LOG": "false",
}


def airflow_environment(
    settings: StackSettings, server: Server, secrets: SecretBook, ports: Mapping[str, int]
) -> dict[str, str]:
    """Everything a process of the stack needs to know, on top of the caller's environment.

    Airflow variables of the caller's are dropped, because they describe some other Airflow; connections
    (AIRFLOW_CONN_*) and variables (AIRFLOW_VAR_*) stay. `ports` has `api`, `simulator`, `worker_log`, `trigger_log`.
    """
    env = {name: value for name, value in os.environ.items() if not _unwanted(name)}
    own = [] if settings.airflow_python else [str(settings.repository / "include"), str(settings.repository)]
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [*own, os.environ.get("PYTHONPATH", "")]))
    env["PATH"] = os.pathsep.join([str(settings.python.parent), env.get("PATH", os.defpath)])
    env |= NO_TELEMETRY
    env |= {"NIGHTMILL_HOME": str(settings.home), "AIRFLOW_HOME": str(settings.airflow_home)}
    env["NIGHTMILL_CACHE"] = str(settings.home / "cache")
    env |= {f"AIRFLOW__{name}": value for name, value in OPTIONS.items()}
    env |= {f"AIRFLOW__{name}": value for name, value in _placed_options(settings, server, secrets, ports).items()}
    env |= _connections(server, ports["simulator"])
    return env | dict(settings.airflow_overrides)


def write_password_file(settings: StackSettings, secrets: SecretBook) -> None:
    """The simple auth manager reads its users' passwords from here."""
    path = settings.airflow_home / "passwords.json"
    text = json.dumps({ADMIN_USER: secrets.get("admin_password")}) + "\n"
    if not path.exists() or path.read_text() != text:
        write_private(path, text)


def _unwanted(name: str) -> bool:
    """Settings of some other Airflow; and a ban on bytecode files, which makes each start take three times as long."""
    return name.startswith("AIRFLOW__") or name in {"AIRFLOW_HOME", "AIRFLOW_CONFIG", "PYTHONDONTWRITEBYTECODE"}


def _placed_options(
    settings: StackSettings, server: Server, secrets: SecretBook, ports: Mapping[str, int]
) -> dict[str, str]:
    base_url = f"http://{LOOPBACK}:{ports['api']}"
    database = server.dsn(AIRFLOW_DATABASE, AIRFLOW_DATABASE).replace("postgresql://", "postgresql+psycopg://")
    return {
        "CORE__DAGS_FOLDER": str(settings.dags_folder),
        "CORE__PLUGINS_FOLDER": str(settings.plugins_folder),
        "CORE__PARALLELISM": str(settings.parallelism),
        "CORE__FERNET_KEY": secrets.get("fernet_key", new_fernet_key),
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(settings.airflow_home / "passwords.json"),
        "CORE__EXECUTION_API_SERVER_URL": f"{base_url}/execution/",
        "DATABASE__SQL_ALCHEMY_CONN": database,
        "API__BASE_URL": base_url,
        "API__PORT": str(ports["api"]),
        "API__SECRET_KEY": secrets.get("api_secret_key", new_signing_key),
        "API_AUTH__JWT_SECRET": secrets.get("jwt_secret", new_signing_key),
        "LOGGING__BASE_LOG_FOLDER": str(settings.airflow_home / "logs"),
        "LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": str(settings.airflow_home / "logs" / "dag_processor"),
        "LOGGING__WORKER_LOG_SERVER_PORT": str(ports["worker_log"]),
        "LOGGING__TRIGGER_LOG_SERVER_PORT": str(ports["trigger_log"]),
    }


def _connections(server: Server, simulator_port: int) -> dict[str, str]:
    found: dict[str, dict[str, str | int]] = {
        conn_id: {
            "conn_type": "postgres",
            "host": LOOPBACK,
            "port": server.port,
            "schema": LEDGER_DATABASE,
            "login": login,
            "password": server.password(login),
        }
        for conn_id, login in CONNECTION_LOGINS.items()
    }
    found["nightmill_provider"] = {
        "conn_type": "generic",
        "host": f"http://{LOOPBACK}:{simulator_port}/v1",
        "password": "local-provider",  # the local provider takes any key
    }
    # For jobs with `adapter: anthropic`: the same server speaks that API too.
    found["nightmill_anthropic"] = found["nightmill_provider"] | {"host": f"http://{LOOPBACK}:{simulator_port}"}
    return {f"AIRFLOW_CONN_{conn_id.upper()}": json.dumps(value) for conn_id, value in found.items()}

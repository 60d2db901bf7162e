"""The local stack: embedded Postgres, the local provider and Airflow on one machine; `up` also repairs.

`up` brings every part to the wanted state whatever it finds: nothing, a running stack, dead processes after a crash
or a reboot, processes with old settings. `down` stops exactly what `up` started, with all children, Postgres last.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version

from dev.stack import airflow_settings as airflow
from dev.stack.airflow_client import StackClient
from dev.stack.components import AIRFLOW_PROCESSES, PROVIDER, Component, components, wait_until_ready
from dev.stack.ledger import prepare_ledger
from dev.stack.ports import LOOPBACK, PortBook
from dev.stack.postgres import Server, running_pid, start_server, stop_server
from dev.stack.processes import is_alive, spawn, stop
from dev.stack.settings import StackSettings
from dev.stack.stack_state import StackBooks
from nightmill.domain.errors import ConfigError
from nightmill.operations.apply import Applied
from nightmill.services.airflow_rest import AIRFLOW_PASSWORD, AIRFLOW_URL, AIRFLOW_USER

POOLS = {
    "nightmill_batch": (8, "Awake tasks of batch jobs. Waiting (deferred) shards take no slot."),
    "nightmill_online": (4, "Tasks of urgent lanes, so that batch work never takes their slots."),
}
STOP_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class Running:
    """A stack that is up. `changed` says what this `up` had to start, in its order; `applied` what came of each job
    folder's view. `outdated`: an `up` with the settings of now would restart something."""

    settings: StackSettings
    server: Server
    ports: Mapping[str, int]
    env: Mapping[str, str]
    admin_password: str
    changed: tuple[str, ...]
    applied: tuple[Applied, ...] = ()
    outdated: bool = False

    @property
    def ui(self) -> str:
        """Address of Airflow's UI and REST API."""
        return f"http://{LOOPBACK}:{self.ports['api']}"

    def client(self) -> StackClient:
        """A REST client logged in as the administrator."""
        return StackClient(self.ui, airflow.ADMIN_USER, self.admin_password)

    def command_env(self) -> dict[str, str]:
        """What `python -m nightmill` is given here: the stack's connections, and the way to its Airflow."""
        login = {AIRFLOW_URL: self.ui, AIRFLOW_USER: airflow.ADMIN_USER, AIRFLOW_PASSWORD: self.admin_password}
        return dict(self.env) | login

    def ledger_dsn(self, login: str) -> str:
        """Connection URL of the database `nightmill` for one of the logins in `airflow_settings`."""
        return self.server.dsn(airflow.LEDGER_DATABASE, login)


class Stack:
    """One local stack, known by its state directory."""

    def __init__(self, settings: StackSettings) -> None:
        self.settings = settings
        self.books = StackBooks(settings.home)

    def up(self) -> Running:
        """Start what is not running and wait until all is healthy. Raises Transient or ConfigError with the end of
        the log of what failed; the rest is left running for a look, and a later `up` goes on."""
        self.books.open()
        with self.books.locked():
            changed: list[str] = []
            ports = self.books.ports()
            server = self._start_postgres(ports, changed)
            numbers = self._choose_ports(ports)
            secrets = self.books.secrets()
            env = airflow.airflow_environment(self.settings, server, secrets, numbers)
            airflow.write_password_file(self.settings, secrets)
            applied = self._migrate(server, env)
            wanted = components(self.settings, env, numbers)
            changed += [component.name for component in wanted if self._ensure_running(component)]
            wait_until_ready(numbers, self.books.records(), self.settings.ready_timeout_s)
            password = secrets.get("admin_password")
            running = Running(self.settings, server, numbers, env, password, tuple(changed), tuple(applied))
            _make_pools(running)  # even if nothing was started: the last `up` may have been interrupted
            return running

    def attach(self) -> Running | None:
        """The running stack as it is, or None unless all of it runs. Starts nothing."""
        ports = self.books.ports()
        numbers = {name: ports.get(name) or 0 for name in ("api", PROVIDER, "worker_log", "trigger_log")}
        if running_pid(self.settings.postgres_home) is None or not all(map(self.books.alive, self._names())):
            return None
        server, secrets = start_server(self.settings.postgres_home), self.books.secrets()
        env = airflow.airflow_environment(self.settings, server, secrets, numbers)
        records, wanted = self.books.records(), components(self.settings, env, numbers)
        outdated = any(records[one.name].fingerprint != one.fingerprint for one in wanted)
        return Running(self.settings, server, numbers, env, secrets.get("admin_password"), (), outdated=outdated)

    def down(self) -> list[str]:
        """Stop what runs: Airflow's working processes first, then its API and the provider, Postgres last. Returns
        the names of what was stopped."""
        if not self.settings.home.exists():
            return []
        with self.books.locked():
            stopped = self._stop([name for name in AIRFLOW_PROCESSES if name != "api-server"])
            stopped += self._stop(["api-server", PROVIDER])
            if running_pid(self.settings.postgres_home) is not None:
                stop_server(self.settings.postgres_home)
                stopped.append("postgres")
            return stopped

    def status(self) -> list[tuple[str, str, str]]:
        """(name, state, where it listens and logs) of every part."""
        records, ports = self.books.records(), self.books.ports()
        pid = running_pid(self.settings.postgres_home)
        where = f"{LOOPBACK}:{ports.get('postgres')}  {self.settings.postgres_home / 'postgres.log'}"
        rows = [("postgres", f"pid {pid}" if pid else "down", where)]
        for name in self._names():
            record = records.get(name)
            state = "down" if record is None else f"pid {record.pid}" if is_alive(record) else "dead"
            port = {"api-server": ports.get("api"), PROVIDER: ports.get(PROVIDER)}.get(name)
            log = self.settings.logs / f"{name}.log"
            rows.append((name, state, f"{LOOPBACK}:{port}  {log}" if port else str(log)))
        return rows

    @staticmethod
    def _names() -> tuple[str, ...]:
        return (PROVIDER, *AIRFLOW_PROCESSES)

    def _start_postgres(self, ports: PortBook, changed: list[str]) -> Server:
        """Start Postgres with its databases and logins. If it was down, Airflow's processes lost their sessions and
        are stopped, to start afresh."""
        home = self.settings.postgres_home
        if running_pid(home) is None:
            self._stop(list(AIRFLOW_PROCESSES))
            changed.append("postgres")
        server = start_server(home, port=ports.get("postgres"))
        ports.remember("postgres", server.port)
        if "postgres" in changed:
            for login in (airflow.AIRFLOW_DATABASE, *airflow.LEDGER_LOGINS):
                server.create_login(login)
            server.create_database(airflow.AIRFLOW_DATABASE, owner=airflow.AIRFLOW_DATABASE)
            server.create_database(airflow.LEDGER_DATABASE, owner=airflow.OWNER)
        return server

    def _choose_ports(self, ports: PortBook) -> dict[str, int]:
        owners = {"api": "api-server", PROVIDER: PROVIDER, "worker_log": None, "trigger_log": None}
        return {
            name: ports.choose(name, in_use_by_us=owner is not None and self.books.alive(owner))
            for name, owner in owners.items()
        }

    def _migrate(self, server: Server, env: Mapping[str, str]) -> list[Applied]:
        """Bring Airflow's database (once per version and cluster: it takes some 10 s) and the ledger up to date."""
        wanted = f"apache-airflow {version('apache-airflow')} on {server.cluster_id()}"
        if self.books.migrated() != wanted:
            self._migrate_airflow(env)
            self.books.note_migrated(wanted)
        return prepare_ledger(server, self.settings.dags_folder)

    def _migrate_airflow(self, env: Mapping[str, str]) -> None:
        log = self.settings.logs / "db-migrate.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch(mode=0o600)
        with log.open("ab") as stream:
            command = [str(self.settings.python), "-m", "airflow", "db", "migrate"]
            done = subprocess.run(
                command, env=dict(env), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, check=False
            )
        if done.returncode != 0:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
            raise ConfigError(f"Airflow's database could not be migrated:\n{tail}", f"see {log}.")

    def _ensure_running(self, component: Component) -> bool:
        """Start the component unless it runs with the same settings. True if it was started."""
        record = self.books.records().get(component.name)
        if record is not None:
            if is_alive(record) and record.fingerprint == component.fingerprint:
                return False
            stop([record], STOP_GRACE_S)  # children of a killed process live on
        started = spawn(component.argv, component.env, component.log, component.fingerprint)
        self.books.record(component.name, started)
        return True

    def _stop(self, names: list[str]) -> list[str]:
        records = {name: record for name, record in self.books.records().items() if name in names}
        stop(records.values(), STOP_GRACE_S)
        for name in records:
            self.books.record(name, None)
        return list(records)


def _make_pools(running: Running) -> None:
    with running.client() as client:
        for name, (slots, description) in POOLS.items():
            client.ensure_pool(name, slots, description)

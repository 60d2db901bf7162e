"""A small client of Airflow's REST API v2, for commands that trigger a DAG or look at the deployment.

A command line call of Airflow costs 5 to 6 s, a request some milliseconds.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import certifi
import httpx

from nightmill.domain.errors import NightmillError, Transient
from nightmill.domain.foreign_faults import TRUST, untrusted

AIRFLOW_URL, AIRFLOW_USER, AIRFLOW_PASSWORD = (  # where a command finds Airflow's REST API
    "NIGHTMILL_AIRFLOW_URL",
    "NIGHTMILL_AIRFLOW_USER",
    "NIGHTMILL_AIRFLOW_PASSWORD",
)
Json = dict[str, Any]
PAGE = 100
ATTEMPTS = 4  # of a call whose answer takes too long


class AirflowRefused(NightmillError):
    """Airflow answered 4xx. `status` is the HTTP status."""

    def __init__(self, cause: str, remedy: str, status: int) -> None:
        super().__init__(cause, remedy)
        self.status = status


class AirflowClient:
    """Logs in on first use and again when the token has expired. Use as a context manager."""

    def __init__(self, base_url: str, username: str, password: str, timeout_s: float = 30.0) -> None:
        self.base_url = base_url.rstrip("/")
        self._login = {"username": username, "password": password}
        verify = _trusted() if self.base_url.startswith("https:") else False
        self._http = httpx.Client(base_url=self.base_url, timeout=timeout_s, trust_env=False, verify=verify)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._http.close()

    def health(self) -> Json:
        """/monitor/health: needs no login. Raises Transient while the server is not answering."""
        return self._send("GET", "/api/v2/monitor/health", login=False)

    def dag(self, dag_id: str) -> Json:
        """The DAG as Airflow knows it; AirflowRefused 404 until the dag-processor has parsed it."""
        return self._send("GET", f"/api/v2/dags/{dag_id}")

    def import_errors(self) -> list[Json]:
        """DAG files that cannot be imported."""
        return list(self._send("GET", "/api/v2/importErrors")["import_errors"])

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None, run_id: str | None = None) -> str:
        """Start a run without a logical date and return its run id. An unanswered call starts no second one."""
        run_id = run_id or f"manual__{datetime.now(UTC).isoformat()}"
        body: Json = {"logical_date": None, "conf": dict(conf or {}), "dag_run_id": run_id}
        try:
            return str(self._send("POST", f"/api/v2/dags/{dag_id}/dagRuns", json=body)["dag_run_id"])
        except Transient:
            if self.find_run(dag_id, run_id) is None:
                raise
        return run_id

    def find_run(self, dag_id: str, run_id: str) -> Json | None:
        """The same, None where there is no such run."""
        return self._found(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")

    def pools(self) -> dict[str, Json]:
        """All pools by name."""
        return {pool["name"]: pool for pool in self._send("GET", "/api/v2/pools", params={"limit": PAGE})["pools"]}

    def variable(self, key: str) -> str | None:
        """An Airflow variable of the metadata database, None where there is none."""
        found = self._found(f"/api/v2/variables/{key}")
        return None if found is None else str(found["value"])

    def plugins(self) -> set[str]:
        """The names of the plugins that the API server has loaded."""
        return {one["name"] for one in self._send("GET", "/api/v2/plugins", params={"limit": PAGE})["plugins"]}

    def _found(self, path: str) -> Json | None:
        try:
            return self._send("GET", path)
        except AirflowRefused as refusal:
            if refusal.status != 404:
                raise
        return None

    def _send(self, method: str, path: str, login: bool = True, **arguments: Any) -> Json:
        """One call. What can be asked twice is asked again where the answer takes too long: on a busy machine the
        api-server needs minutes."""
        left = ATTEMPTS if method == "GET" and login else 1
        while True:
            left -= 1
            try:
                return self._read(method, path, self._answer(method, path, login, arguments))
            except httpx.TransportError as problem:
                if why := untrusted(problem):
                    raise Transient(f"Airflow at {self.base_url} is not to be trusted: {why}.", TRUST) from None
                if not (left and isinstance(problem, httpx.TimeoutException)):
                    raise Transient(
                        f"Airflow at {self.base_url} did not answer ({problem!r}).",
                        "`make status` shows what runs; a busy machine needs patience.",
                    ) from problem

    def _answer(self, method: str, path: str, login: bool, arguments: Json) -> httpx.Response:
        if login and "Authorization" not in self._http.headers:
            self._log_in()
        response = self._http.request(method, path, **arguments)
        if login and response.status_code == 401:
            self._log_in()
            response = self._http.request(method, path, **arguments)
        return response

    def _log_in(self) -> None:
        token = self._read("POST", "/auth/token", self._http.post("/auth/token", json=self._login))
        self._http.headers["Authorization"] = f"Bearer {token['access_token']}"

    @staticmethod
    def _read(method: str, path: str, response: httpx.Response) -> Json:
        what = f"{method} {path} was answered {response.status_code}: {response.text[:500]}"
        if response.status_code >= 500:
            raise Transient(what, "see the api-server's log.")
        if response.is_redirect:  # the login would go along
            raise AirflowRefused(f"{method} {path} was redirected.", f"correct {AIRFLOW_URL}.", response.status_code)
        if response.status_code >= 400:
            raise AirflowRefused(what, "correct the request.", response.status_code)
        answer: Json = response.json() if response.content else {}
        return answer


def _trusted() -> ssl.SSLContext:
    """httpx's list of authorities, and the machine's own with SSL_CERT_FILE, which httpx reads only with trust_env."""
    context = ssl.create_default_context(cafile=certifi.where())
    context.load_default_certs()
    return context

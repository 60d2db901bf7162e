"""`python -m nightmill doctor` on a real ledger, source, object store and provider: each fault with its remedy."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from providers.scripted_server import Request, ScriptedServer, answer, error
from support import development_ledger
from support.pipeline import Pipeline
from support.steps import set_faults

from dev.practice_provider.server import start_in_thread
from dev.practice_provider.settings import Settings
from dev.stack.postgres import Server
from nightmill.cli.commands import main
from nightmill.operations import doctor
from nightmill.services.environment import utc_now

KEY = "sk-the-key-that-must-not-show"


@dataclass
class Surgery:
    """A healthy deployment; tests break one thing and ask the doctor."""

    pipeline: Pipeline
    patch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def connect(self, conn_id: str, uri: str) -> None:
        self.patch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", uri)

    def connect_provider(self, base_url: str, key: str = KEY) -> None:
        self.connect("provider", json.dumps({"conn_type": "generic", "host": base_url, "password": key}))

    def run(self) -> tuple[int, dict[str, dict[str, str]]]:
        code = main(["doctor", "--json", "--jobs", str(self.pipeline.folder.parent)])
        said = self.capsys.readouterr().out
        assert KEY not in said
        return code, {one.pop("check"): one for one in json.loads(said)}

    def failing(self) -> dict[str, dict[str, str]]:
        """What failed; the command says so too."""
        code, findings = self.run()
        failed = {check: one for check, one in findings.items() if one["status"] == "failed"}
        assert code == (1 if failed else 0)
        assert all(one["remedy"] for one in findings.values() if one["status"] != "ok")
        return failed


@pytest.fixture
def surgery(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Surgery:
    made = Surgery(pipeline, monkeypatch, capsys)
    for name in ("URL", "USER", "PASSWORD"):
        monkeypatch.delenv(f"NIGHTMILL_AIRFLOW_{name}", raising=False)
    monkeypatch.delenv("NIGHTMILL_JOBS_PATH", raising=False)
    monkeypatch.delenv("AIRFLOW__CORE__EXECUTOR", raising=False)
    monkeypatch.delenv("NIGHTMILL_OBJECT_STORE_CONN_ID", raising=False)
    monkeypatch.setenv("NIGHTMILL_OBJECT_STORE", f"file://{tmp_path / 'objects'}")
    made.connect("nightmill_db", pipeline.writer_dsn)
    made.connect("source", pipeline.admin_dsn)
    made.connect_provider(pipeline.simulator.base_url)
    return made


def test_an_airflow_that_redirects_is_named_and_the_login_goes_nowhere_else(surgery: Surgery) -> None:
    with ScriptedServer(lambda request: answer({})).running() as elsewhere:
        moved = answer(b"", "307 Moved", location=elsewhere.base_url)
        with ScriptedServer(lambda request: moved).running() as airflow:
            surgery.patch.setenv("NIGHTMILL_AIRFLOW_URL", airflow.base_url)
            surgery.patch.setenv("NIGHTMILL_AIRFLOW_USER", "admin")
            surgery.patch.setenv("NIGHTMILL_AIRFLOW_PASSWORD", KEY)
            failed = surgery.failing()
    assert any("correct NIGHTMILL_AIRFLOW_URL" in one["remedy"] for one in failed.values())
    assert elsewhere.requests == []


def test_a_provider_that_would_be_called_unencrypted_is_named_with_the_way_to_allow_it(surgery: Surgery) -> None:
    surgery.connect_provider("http://provider:8000/v1")
    failed = surgery.failing()["notes: provider"]
    assert "Connection 'provider' would send its key and the documents unencrypted to provider" in failed["seen"]
    assert '{"allow_http": true} into its extra' in failed["remedy"]


def test_a_provider_that_may_be_called_unencrypted_is_ok_and_said_to_be(surgery: Surgery) -> None:
    with ScriptedServer(lambda request: answer({"data": [{"id": "echo-1"}]})).running() as proxy:
        surgery.patch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        fields = {"conn_type": "generic", "host": "http://provider:8000/v1", "password": KEY}
        surgery.connect("provider", json.dumps(fields | {"extra": {"allow_http": True}}))
        _, findings = surgery.run()
    assert "over unencrypted http (allow_http)" in findings["notes: provider"]["seen"]
    paths = [request.target.removeprefix("http://provider:8000/v1") for request in proxy.requests]
    assert paths == ["/models", "/files?limit=1", "/batches?limit=1", "/models"]  # the last one for its clock


def test_a_healthy_deployment_is_ok_and_airflow_is_not_checked_without_its_address(surgery: Surgery) -> None:
    code, findings = surgery.run()
    assert code == 0
    assert {check: one["status"] for check, one in findings.items()} == {
        "ledger": "ok",
        "ledger: Postgres version": "ok",
        "ledger: migrations": "ok",
        "ledger: login": "ok",
        "ledger: clock": "ok",
        "ledger: deployment": "ok",
        "maintenance": "ok",
        "object store": "ok",
        "notes: job folder": "ok",
        "notes: source": "ok",
        "notes: provider": "ok",
        "notes: provider's clock": "ok",
        "notes: view": "ok",
        "notes: price": "ok",
        "notes: dead letters": "ok",
        "airflow": "not checked",
    }
    assert "NIGHTMILL_AIRFLOW_URL" in findings["airflow"]["remedy"]


def test_it_leaves_nothing_in_the_object_store_and_sends_no_work(surgery: Surgery, tmp_path: Path) -> None:
    surgery.run()
    assert list((tmp_path / "objects").iterdir()) == []
    assert surgery.pipeline.simulator.books(summary=True)["batches"] == []


def test_for_people_each_line_is_marked_and_the_last_one_counts(surgery: Surgery) -> None:
    surgery.connect_provider("http://127.0.0.1:9/v1")
    assert main(["doctor", "--jobs", str(surgery.pipeline.folder.parent)]) == 1
    lines = surgery.capsys.readouterr().out.splitlines()
    assert lines[0] == "ok       ledger: nightmill_db answers"
    assert any(line.startswith("FAILED   notes: provider: ") for line in lines)
    assert lines[-1] == "13 ok, 1 failed, 1 not checked"


def test_it_says_which_airflow_the_ledger_belongs_to_and_fails_for_another_one(surgery: Surgery) -> None:
    assert surgery.run()[1]["ledger: deployment"]["seen"].startswith("belongs to no Airflow yet")
    surgery.pipeline.sql("insert into nightmill.deployment (deployment_id) values ('airflow-one')")
    assert surgery.run()[1]["ledger: deployment"]["seen"].startswith(
        "belongs to the Airflow deployment airflow-one since"
    )
    surgery.patch.setenv("AIRFLOW_VAR_NIGHTMILL_DEPLOYMENT", "airflow-one")
    assert surgery.run()[1]["ledger: deployment"]["seen"].startswith("belongs to this Airflow airflow-one since")
    surgery.patch.setenv("AIRFLOW_VAR_NIGHTMILL_DEPLOYMENT", "airflow-two")
    failed = surgery.failing()
    assert failed.keys() == {"ledger: deployment"}
    assert "airflow variables set nightmill_deployment airflow-one" in failed["ledger: deployment"]["remedy"]


def test_an_airflow_without_an_id_is_told_before_its_first_task_is_refused(surgery: Surgery) -> None:
    surgery.pipeline.sql("insert into nightmill.deployment (deployment_id) values ('airflow-one')")
    with doctor.open_ledger(surgery.pipeline.writer_dsn) as conn:
        found = doctor.examine_deployment(conn, "")
    assert found.status is doctor.Status.WARNING
    assert "no variable nightmill_deployment" in found.seen and "airflow-one" in found.seen
    assert "airflow variables set nightmill_deployment airflow-one" in found.remedy


def test_maintenance_that_does_not_run_and_its_alerts_are_warnings(surgery: Surgery) -> None:
    assert surgery.run()[1]["maintenance"]["seen"] == "nothing to do so far"
    sql = surgery.pipeline.sql
    sql("insert into nightmill.maintenance_sweep (sweep) values ('stuck')")
    sql("insert into nightmill.maintenance_action (sweep, what, alert) values ('stuck', 'x', true)")
    code, findings = surgery.run()
    assert (code, findings["maintenance"]["status"]) == (0, "warning")
    assert findings["maintenance"]["seen"] == "1 alert within a day"
    sql("update nightmill.maintenance_sweep set ran_at = now() - interval '2 hours'")
    found = surgery.run()[1]["maintenance"]
    assert found["seen"].startswith("no sweep came to its end since")
    assert "Unpause nightmill_maintenance" in found["remedy"]


def test_a_ledger_that_does_not_answer_stops_no_other_check(surgery: Surgery) -> None:
    surgery.connect("nightmill_db", "postgresql://me:hunter2@127.0.0.1:9/x")
    code, findings = surgery.run()
    assert code == 1
    assert findings["ledger"]["status"] == "failed"
    assert "Check the connection nightmill_db" in findings["ledger"]["remedy"]
    assert "hunter2" not in json.dumps(findings)
    assert findings["notes: view"]["status"] == "not checked"
    assert {findings[check]["status"] for check in ("object store", "notes: source", "notes: provider")} == {"ok"}


def test_connections_that_are_not_defined_are_named(surgery: Surgery) -> None:
    for conn_id in ("NIGHTMILL_DB", "SOURCE", "PROVIDER"):
        surgery.patch.delenv(f"AIRFLOW_CONN_{conn_id}")
    failed = surgery.failing()
    assert failed.keys() == {"ledger", "notes: source", "notes: provider"}
    assert "Set AIRFLOW_CONN_SOURCE" in failed["notes: source"]["remedy"]


def test_a_database_without_a_ledger_needs_init_db(surgery: Surgery, make_database: Callable[..., str]) -> None:
    surgery.connect("nightmill_db", make_database())
    failed = surgery.failing()
    assert "no ledger" in failed["ledger: migrations"]["seen"]
    assert "init-db" in failed["ledger: migrations"]["remedy"]


def test_migrations_behind_and_ahead_are_named(surgery: Surgery) -> None:
    surgery.pipeline.sql("delete from nightmill.migration where number = (select max(number) from nightmill.migration)")
    assert "The ledger lacks 0001_schema" in surgery.failing()["ledger: migrations"]["seen"]
    surgery.pipeline.sql("insert into nightmill.migration (number, name) values (9999, 'later')")
    assert "migration 9999 is unknown here" in surgery.failing()["ledger: migrations"]["seen"]


def test_a_ledger_of_a_development_version_is_named_with_the_way_out(surgery: Surgery) -> None:
    development_ledger.pretend(surgery.pipeline.admin_dsn)
    failed = surgery.failing()["ledger: migrations"]
    assert "made by a development version" in failed["seen"]
    assert failed["remedy"] == "Run `make clean` (local stack) or create a new database."


def test_a_login_outside_the_writer_role_fails_and_an_owner_is_a_warning(
    surgery: Surgery, postgres_server: Server
) -> None:
    database = surgery.pipeline.admin_dsn.rsplit("/", 1)[1]
    postgres_server.create_login("nightmill_test_stranger")
    surgery.connect("nightmill_db", postgres_server.dsn(database, "nightmill_test_stranger"))
    assert 'grant nightmill_writer to "nightmill_test_stranger"' in surgery.failing()["ledger: login"]["remedy"]
    surgery.connect("nightmill_db", surgery.pipeline.admin_dsn)
    code, findings = surgery.run()
    assert (code, findings["ledger: login"]["status"]) == (0, "warning")


def test_a_broken_folder_and_one_that_is_not_applied_are_told_apart(surgery: Surgery) -> None:
    surgery.pipeline.edit("job.yaml", "view: notes", "view: fresh")
    assert "nightmill apply" in surgery.failing()["notes: view"]["remedy"]
    surgery.pipeline.edit("job.yaml", "model:", "modle:")
    failed = surgery.failing()
    assert failed.keys() == {"notes: job folder"}
    assert failed["notes: job folder"]["seen"].endswith("provider.modle: unknown key; did you mean 'model'?")


def test_a_view_whose_job_was_renamed_is_a_warning_and_apply_tells_it_too(
    surgery: Surgery, capsys: pytest.CaptureFixture[str]
) -> None:
    surgery.connect("nightmill_owner", surgery.pipeline.admin_dsn)
    folder = surgery.pipeline.folder
    surgery.pipeline.folder = folder.rename(folder.parent / "renamed")
    surgery.pipeline.edit("job.yaml", "view: notes", "view: renamed")
    assert main(["apply", "--jobs", str(folder.parent)]) == 0
    told = capsys.readouterr().out
    assert (
        "notes: orphaned: results.notes belongs to job notes, which has no folder; it goes on showing no rows" in told
    )
    assert "Name the folder notes again." in told
    code, findings = surgery.run()
    assert (code, findings["notes: view"]["status"]) == (0, "warning")
    assert "set job = 'NEW_NAME' where view_name = 'notes'" in findings["notes: view"]["remedy"]


def test_a_view_of_before_is_a_warning_until_apply(surgery: Surgery) -> None:
    surgery.pipeline.sql("alter view results.notes owner to nightmill_owner")
    code, findings = surgery.run()
    assert (code, findings["notes: view"]["status"]) == (0, "warning")
    assert "nightmill apply" in findings["notes: view"]["remedy"]
    assert surgery.pipeline.apply() == "redefined"
    assert surgery.run()[1]["notes: view"]["status"] == "ok"


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("prompt.md", "{{ body }}", "{{ boddy }}", "no column 'boddy' (did you mean 'body'?)"),
        ("job.yaml", "from documents", "from docments", 'relation "docments" does not exist'),
    ],
)
def test_a_query_that_cannot_feed_the_job_is_found(surgery: Surgery, file: str, old: str, new: str, said: str) -> None:
    surgery.pipeline.edit(file, old, new)
    assert said in surgery.failing()["notes: source"]["seen"]


def test_the_source_check_binds_the_defaults_of_the_filters(surgery: Surgery) -> None:
    surgery.pipeline.edit("job.yaml", "from documents", "from documents where id > %(since)s and id > %(text)s")
    filters = "  filters:\n    since: {type: date, nullable: true, description: x}\n"
    filters += "    text: {type: string, default: a, description: x}\n"
    surgery.pipeline.edit("job.yaml", "provider:\n", filters + "provider:\n")
    assert "operator does not exist: text > date" in surgery.failing()["notes: source"]["seen"]
    surgery.pipeline.edit("job.yaml", "id > %(since)s", "version > %(since)s::text")
    assert surgery.failing() == {}


def test_a_wrong_key_an_unknown_model_and_a_wrong_address_are_told_apart(surgery: Surgery, tmp_path: Path) -> None:
    strict = start_in_thread(Settings(data_dir=tmp_path / "strict", batch_s=0, api_key="another"))
    try:
        surgery.connect_provider(strict.base_url)
        found = surgery.failing()["notes: provider"]
        assert "HTTP 401" in found["seen"]
        assert "Check key" in found["remedy"]
    finally:
        strict.stop()
    surgery.connect_provider("http://127.0.0.1:9/v1")
    assert "could not be reached" in surgery.failing()["notes: provider"]["seen"]
    surgery.connect_provider(surgery.pipeline.simulator.base_url + "/nonsense")
    assert "has no Batch API" in surgery.failing()["notes: provider"]["seen"]
    surgery.connect_provider(surgery.pipeline.simulator.base_url)
    surgery.pipeline.edit("job.yaml", "model: echo-1", "model: ecko-1")
    code, findings = surgery.run()
    assert code == 1
    assert "lists no model 'ecko-1' (did you mean 'echo-1'?)." in findings["notes: provider"]["seen"]
    assert findings["notes: price"]["status"] == "warning"


def served(missing: str, status: str) -> Callable[[Request], bytes]:
    """A server of chats that answers every call of a path with a status: `GET /files`, or `/files` for every method."""

    def script(request: Request) -> bytes:
        called = f"{request.method} {request.target.partition('?')[0].removeprefix('/v1')}"
        if called.endswith(missing) or missing == "all":
            return error(status, None)
        return answer({"data": [{"id": "echo-1"}]}) if request.method == "GET" else error("400 Bad Request", "invalid")

    return script


@pytest.mark.parametrize("status", ["404 Not Found", "405 Method Not Allowed", "501 Not Implemented"])
@pytest.mark.parametrize("missing", ["/files", "/batches"])
def test_a_server_without_files_or_batches_has_no_batch_api(surgery: Surgery, missing: str, status: str) -> None:
    with ScriptedServer(served(missing, status)).running() as server:
        surgery.connect_provider(server.base_url)
        failed = surgery.failing()["notes: provider"]
    assert f"has no Batch API: it has no {missing} (HTTP {status[:3]})" in failed["seen"]
    assert [request.body for request in server.requests if request.method == "POST"] == [b"{}"]


@pytest.mark.parametrize("status", ["404 Not Found", "405 Method Not Allowed", "501 Not Implemented"])
def test_a_server_that_takes_batches_without_listing_them_is_a_warning(surgery: Surgery, status: str) -> None:
    with ScriptedServer(served("GET /batches", status)).running() as server:
        surgery.connect_provider(server.base_url)
        code, findings = surgery.run()
    assert (code, findings["notes: provider"]["status"]) == (0, "warning")
    assert f"does not list them (/batches (HTTP {status[:3]}))" in findings["notes: provider"]["seen"]
    with ScriptedServer(served("GET /files", status)).running() as server:
        surgery.connect_provider(server.base_url)
        assert surgery.run()[1]["notes: provider"]["status"] == "ok"  # nobody needs a list of files
    with ScriptedServer(served("GET /models", status)).running() as server:
        surgery.connect_provider(server.base_url)
        assert "lists no models" in surgery.run()[1]["notes: provider"]["seen"]


def test_a_key_that_may_not_use_batches_is_named_as_such(surgery: Surgery) -> None:
    with ScriptedServer(served("GET /batches", "403 Forbidden")).running() as server:
        surgery.connect_provider(server.base_url)
        failed = surgery.failing()["notes: provider"]
    assert "refused asking for /batches (HTTP 403" in failed["seen"]


def test_a_folder_that_only_this_machine_has_is_a_doubt_unless_all_tasks_run_here(
    surgery: Surgery, tmp_path: Path
) -> None:
    surgery.patch.setenv("NIGHTMILL_HOME", str(tmp_path / "home"))
    surgery.patch.delenv("NIGHTMILL_OBJECT_STORE")
    for executor, status in ((None, "warning"), ("CeleryExecutor", "warning"), ("LocalExecutor", "ok")):
        surgery.patch.delenv("AIRFLOW__CORE__EXECUTOR", raising=False)
        if executor:
            surgery.patch.setenv("AIRFLOW__CORE__EXECUTOR", executor)
        found = surgery.run()[1]["object store"]
        assert found["status"] == status, executor
    surgery.patch.delenv("AIRFLOW__CORE__EXECUTOR")
    assert "a worker on another one does not find" in surgery.run()[1]["object store"]["seen"]


@pytest.mark.parametrize(
    ("loaded", "missing"),
    [([], "nightmill_access, nightmill_console, nightmill_listener"), (["nightmill_access"], "nightmill_console")],
)
def test_plugins_that_the_api_server_has_not_loaded_are_named(
    surgery: Surgery, loaded: list[str], missing: str
) -> None:
    def airflow(request: Request) -> bytes:
        names = ("access_token", "import_errors", "plugins", "pools")
        empty: dict[str, object] = {name: [] for name in names} | {"access_token": "t", "value": "x"}
        return answer(empty | {"plugins": [{"name": name} for name in loaded]})

    with ScriptedServer(airflow).running() as server:
        surgery.patch.setenv("NIGHTMILL_AIRFLOW_URL", server.base_url)
        surgery.patch.setenv("NIGHTMILL_AIRFLOW_USER", "admin")
        surgery.patch.setenv("NIGHTMILL_AIRFLOW_PASSWORD", KEY)
        found = surgery.run()[1]["airflow: import errors"]
    assert found["status"] == "warning"
    assert f"the API server has not loaded {missing}" in found["seen"]
    assert "marking a run as failed cancels nothing" in found["remedy"]


def test_an_object_store_that_cannot_be_written_is_found(surgery: Surgery, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    surgery.patch.setenv("NIGHTMILL_OBJECT_STORE", f"file://{tmp_path / 'file'}")
    assert "Check NIGHTMILL_OBJECT_STORE" in surgery.failing()["object store"]["remedy"]


def test_clocks_that_differ_are_found(surgery: Surgery) -> None:
    with doctor.open_ledger(surgery.pipeline.writer_dsn) as conn:
        findings: dict[str, Any] = {
            one.check: one for one in doctor.examine_ledger(conn, lambda: utc_now() - timedelta(seconds=60))
        }
    assert findings["ledger: clock"].status is doctor.Status.FAILED
    assert "60 s apart" in findings["ledger: clock"].seen


def test_a_provider_whose_clock_differs_is_a_warning_with_how_far_and_what_it_costs(surgery: Surgery) -> None:
    set_faults(surgery.pipeline.simulator, clock_behind_s=3600)
    code, findings = surgery.run()
    found = findings["notes: provider's clock"]
    assert (code, found["status"]) == (0, "warning")
    assert found["seen"] == "the clock of provider is 60 min behind this machine's"
    assert "Set this machine's clock by NTP" in found["remedy"]


def test_an_airflow_that_does_not_answer_fails_and_a_login_in_its_address_is_refused(surgery: Surgery) -> None:
    surgery.patch.setenv("NIGHTMILL_AIRFLOW_URL", "http://127.0.0.1:9")
    surgery.patch.setenv("NIGHTMILL_AIRFLOW_USER", "me")
    surgery.patch.setenv("NIGHTMILL_AIRFLOW_PASSWORD", KEY)
    assert "did not answer" in surgery.failing()["airflow: triggerer"]["seen"]
    surgery.patch.setenv("NIGHTMILL_AIRFLOW_URL", f"http://me:{KEY}@127.0.0.1:9")
    assert surgery.failing().keys() == {"airflow"}

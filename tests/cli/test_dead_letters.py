"""`python -m nightmill dead-letters` and `replay`, and what report, status and doctor say of a job's limits."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
import zstandard
from support.pipeline import Pipeline
from support.replays import BAD_INPUT, FILTERED, replayed, with_dead_letters
from support.steps import run_unchecked

from nightmill.cli import status
from nightmill.cli.commands import main
from nightmill.jobs import job_folders
from nightmill.operations import doctor
from nightmill.operations.status import look
from nightmill.stages import report

CANARY = "CANARYMESSAGE"


@pytest.fixture
def deployed(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", pipeline.writer_dsn)
    monkeypatch.delenv("NIGHTMILL_OBJECT_STORE_CONN_ID", raising=False)
    monkeypatch.setenv("NIGHTMILL_OBJECT_STORE", f"file://{pipeline.store}")
    for name in ("URL", "USER", "PASSWORD"):
        monkeypatch.delenv(f"NIGHTMILL_AIRFLOW_{name}", raising=False)
    return pipeline


def said(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["dead-letters", *options]) == 0
    return capsys.readouterr().out


def found(capsys: pytest.CaptureFixture[str], *options: str) -> list[str | None]:
    return [letter["source_id"] for letter in json.loads(said(capsys, "--json", *options))]


def refused(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    capsys.readouterr()
    assert main(["dead-letters", *options]) == 1
    return capsys.readouterr().err.splitlines()[0].removeprefix("error: ")


def test_each_filter_narrows_the_search(deployed: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys) == "no dead letters\n"
    batch = with_dead_letters(deployed, BAD_INPUT, FILTERED).batch_id
    everything = ["doc-05", "doc-08", "doc-10", "doc-15", "doc-18", "doc-20"]
    assert found(capsys) == everything
    assert found(capsys, "--job", "notes", "--batch", str(batch)) == everything
    assert refused(capsys, "--job", "note") == "No batch of a job 'note' is in the ledger (did you mean 'notes'?)."
    assert refused(capsys, "--batch", "4711") == "There is no batch 4711."
    assert found(capsys, "--class", "policy") == ["doc-10", "doc-20"]
    assert found(capsys, "--code", "bad", "--tenant", "acme") == ["doc-05", "doc-08"]
    assert found(capsys, "--id", "doc-05", "doc-20", "--id", "doc-06") == ["doc-05", "doc-20"]
    assert found(capsys, "--since", "2020-01-01") == everything
    assert found(capsys, "--since", "2120-01-01") == []
    counts = json.loads(said(capsys, "--count", "--json"))
    assert [(one["batch_id"], one["class"], one["code"], one["letters"]) for one in counts] == [
        (batch, "input", "bad", 4), (batch, "policy", "content_filter", 2),
    ]  # fmt: skip
    assert f"notes: batch {batch}  input/bad  4  since 20" in said(capsys, "--count")
    assert main(["dead-letters", "--limit", "2"]) == 0
    two = capsys.readouterr()
    assert (len(two.out.splitlines()), "more than 2" in two.err) == (2, True)


def test_a_dead_letter_comes_with_its_context_and_its_message_only_on_request(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = with_dead_letters(deployed, BAD_INPUT).batch_id
    deployed.sql("update nightmill.dead_letter set message = %s", CANARY)
    assert CANARY not in said(capsys) + said(capsys, "--json") + said(capsys, "--count")
    assert CANARY in said(capsys, "--messages")
    [letter] = json.loads(said(capsys, "--json", "--messages", "--id", "doc-05"))
    versions = deployed.live.versions
    [(shard, provider_batch, provider_id)] = deployed.sql(
        "select shard_id, provider_batch_id, provider_id from nightmill.provider_batch where ordinals @> 4::int8"
    )
    assert letter.items() >= {
        "job": "notes", "batch_id": batch, "gave_up_in": batch, "ordinal": 4, "source_version": "1", "tenant": "acme",
        "class": "input", "code": "bad", "message": CANARY, "attempts": 1, "payload_line": 5, "shard_id": shard,
        "provider_batch_id": provider_batch, "provider_id": provider_id, "prompt_version": versions.prompt_version,
        "output_schema_version": versions.output_schema_version,
        "model_policy_version": versions.model_policy_version, "transform_version": versions.transform_version,
    }.items()  # fmt: skip
    assert (deployed.store / letter["payload_object"]).is_file()


def test_an_item_in_review_is_found_with_the_place_of_its_answer(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    refuses_seven = (
        "pages: int\n\n    def model_post_init(self, _):\n"
        "        if 'number 7.' in self.title:\n            raise ValueError('no')\n"
    )
    deployed.edit("output.py", "pages: int\n", refuses_seven)
    deployed.edit("job.yaml", "publish:", "repair: {attempts: 0, exhausted: in_review}\npublish:")
    parent = with_dead_letters(deployed, BAD_INPUT).batch_id
    assert found(capsys, "--ended-as", "in_review") == ["doc-07"]
    assert len(found(capsys, "--ended-as", "dead_lettered")) == 4
    assert f"notes: batch {parent}  output/schema  1  in review  since 20" in said(capsys, "--count")
    [line] = said(capsys, "--id", "doc-07").splitlines()
    assert "output/schema  attempts 1" in line
    assert "  in review  " in line
    # A later batch, in which the document has another place, copies it.
    deployed.sql("delete from documents where id < 'doc-05'")
    deployed.sql("update documents set version = '2' where id = 'doc-09'")
    child = run_unchecked(deployed, "run-2")
    assert child.counts["in_review"] == 1
    [letter] = json.loads(said(capsys, "--json", "--batch", str(child.batch.batch_id), "--id", "doc-07"))
    assert (letter["ordinal"], letter["gave_up_ordinal"], letter["gave_up_in"]) == (2, 6, parent)
    assert letter["answer_object"] in said(capsys, "--messages", "--id", "doc-07")
    with zstandard.open(deployed.store / letter["answer_object"], "rt") as lines:
        assert letter["answer_record_id"] in [json.loads(line)["custom_id"] for line in lines]
    assert main(["replay", "--job", "notes", "--jobs", str(deployed.folder.parent), "--dry-run", "--id", "doc-07"]) == 0
    assert "1 item of batch 2 sent again; in review: 1 output/schema; carried" in capsys.readouterr().out


def test_a_copied_dead_letter_names_the_batch_and_the_versions_under_which_it_gave_up(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = with_dead_letters(deployed, BAD_INPUT, FILTERED).batch_id
    old = deployed.live.versions.prompt_version
    deployed.edit("prompt.md", "Summarise", "Describe")
    child = replayed(deployed, parent, classes=["policy"]).batch.batch_id
    letters = json.loads(said(capsys, "--json", "--batch", str(child)))
    assert [(one["gave_up_in"], one["prompt_version"], one["payload_line"]) for one in letters] == [
        (parent, old, one["ordinal"] + 1) for one in letters
    ]
    assert len(letters) == 4
    assert f"gave up in batch {parent}" in said(capsys, "--batch", str(child))


def test_a_dry_run_of_replay_says_what_would_be_sent_again(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = with_dead_letters(deployed, BAD_INPUT, FILTERED).batch_id
    options = ["replay", "--job", "notes", "--jobs", str(deployed.folder.parent), "--dry-run"]
    assert main([*options, "--class", "input"]) == 0
    text = capsys.readouterr().out
    assert f"4 items of batch {parent} sent again; dead letters: 4 input/bad; carried as they are: 16" in text
    assert "dry run: nothing was triggered" in text
    assert main([*options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "job": "notes", "parent_batch": parent, "sent_again": 6, "unsettled": 0, "carried": 14,
        "contract_changed": False, "dag_id": "nightmill_test", "run_id": None,
        "dead_letters": [
            {"class": "input", "code": "bad", "letters": 4},
            {"class": "policy", "code": "content_filter", "letters": 2},
        ],
        "in_review": [],
    }  # fmt: skip
    assert main([*options, "--tenant", "nobody"]) == 1
    assert "no dead letter or item in review that matches" in capsys.readouterr().err
    assert main(options[:-1]) == 1  # without Airflow's address
    assert "trigger the DAG nightmill_replay in the UI" in capsys.readouterr().err


class Airflow(BaseHTTPRequestHandler):
    """The three answers that triggering a run takes."""

    triggered: list[Any] = []  # noqa: RUF012
    paused = False

    def do_GET(self) -> None:
        self._answer({"is_paused": type(self).paused})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/auth/token":
            self._answer({"access_token": "token"}, 201)
            return
        self.triggered.append((self.path, body))
        self._answer({"dag_run_id": "manual__1"})

    def _answer(self, value: Any, code: int = 200) -> None:
        content = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Airflow]]:
    Airflow.triggered.clear()
    Airflow.paused = False
    with ThreadingHTTPServer(("127.0.0.1", 0), Airflow) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("NIGHTMILL_AIRFLOW_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("NIGHTMILL_AIRFLOW_USER", "operator")
        monkeypatch.setenv("NIGHTMILL_AIRFLOW_PASSWORD", "secret")
        yield Airflow
        server.shutdown()
        thread.join()


def test_replay_triggers_the_dag_of_the_parents_job(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, request: Any
) -> None:
    parent = with_dead_letters(deployed, BAD_INPUT).batch_id
    server = request.getfixturevalue("airflow")
    options = ["replay", "--job", "notes", "--jobs", str(deployed.folder.parent), "--class", "input"]
    assert main([*options, "--note", "mended"]) == 0
    assert "triggered nightmill_test, run manual__1" in capsys.readouterr().out
    [(path, body)] = server.triggered
    assert path == "/api/v2/dags/nightmill_test/dagRuns"
    assert body["conf"] == {
        "parent_batch": parent, "replay": {"classes": ["input"]}, "note": "mended",
    }  # fmt: skip
    server.paused = True
    assert main(options) == 1
    assert "is paused" in capsys.readouterr().err
    assert len(server.triggered) == 1


def test_limits_on_dead_letters_that_are_broken_show_in_report_status_and_doctor(
    deployed: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    deployed.edit("job.yaml", "publish:", "dead_letters: {max_count: 3, max_age_h: 0.00001}\npublish:")
    caplog.set_level(logging.INFO)
    batch = with_dead_letters(deployed, BAD_INPUT).batch_id
    many = "4 dead letters, more than dead_letters.max_count 3"
    warnings = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert f"alert: {many}" in warnings
    made = report.build(deployed.env, batch)
    assert "more than dead_letters.max_age_h 1e-05" in report.render(made)
    [standing] = look(deployed.env)
    assert f"  ALERT     {many}" in status.block(standing)
    assert status.fields(standing)["alerts"][0] == many
    found = job_folders.find([deployed.folder.parent])
    with doctor.open_ledger(deployed.writer_dsn) as ledger:
        findings = list(doctor.examine_jobs(deployed.env.connections, found, ledger, deployed.env.now))
    [finding] = [one for one in findings if one.check == "notes: dead letters"]
    assert finding.status is doctor.Status.WARNING
    assert finding.seen.startswith(f"batch {batch}: {many}; the oldest dead letter is")
    assert f"dead-letters --batch {batch} --count" in finding.remedy


def test_without_limits_nothing_is_an_alert(deployed: Pipeline) -> None:
    with_dead_letters(deployed, BAD_INPUT)
    assert [one.alerts for one in look(deployed.env)] == [[]]


def test_an_option_is_written_out_and_a_choice_is_answered_with_the_known_ones(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    for options, complaint in (
        (["--clas", "output"], "unrecognized arguments: --clas"),
        (["--class", "outpt"], "'output'"),
    ):
        with pytest.raises(SystemExit):
            main(["replay", "--job", "notes", *options])
        said_of_it = capsys.readouterr().err
        assert complaint in said_of_it
        assert "FailureClass" not in said_of_it

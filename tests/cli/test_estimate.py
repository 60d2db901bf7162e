"""`python -m nightmill estimate JOB`: what a run would send and cost, without a trace of having looked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import batch_of, run_unchecked, set_faults

from nightmill.cli.commands import main
from nightmill.domain.errors import SourceError

FILTERS = """  filters:
    customer: {type: enum, values: [acme, umbrella], nullable: true, description: Whose documents.}
    shortest: {type: integer, minimum: 0, default: 0, description: Characters at least.}
"""


@pytest.fixture
def deployed(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", pipeline.writer_dsn)
    monkeypatch.setenv("AIRFLOW_CONN_SOURCE", pipeline.admin_dsn)
    for name in ("NIGHTMILL_OBJECT_STORE_CONN_ID", "NIGHTMILL_JOBS_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NIGHTMILL_OBJECT_STORE", f"file://{pipeline.store}")
    where = "where (%(customer)s is null or tenant = %(customer)s) and length(body) >= %(shortest)s"
    pipeline.edit("job.yaml", "from documents", f"from documents {where}")
    pipeline.edit("job.yaml", "provider:\n", FILTERS + "provider:\n")
    return pipeline


def run(pipeline: Pipeline, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["estimate", "notes", "--jobs", str(pipeline.folder.parent), *options])
    said = capsys.readouterr()
    return code, said.out, said.err


def forecast(pipeline: Pipeline, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    code, out, err = run(pipeline, capsys, "--json", *options)
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def dry_run(pipeline: Pipeline, run_id: str, **params: Any) -> dict[str, Any]:
    """What a dry run works out of the same question."""
    batch = pipeline.freeze(run_id, dry_run=True, params=params)
    pipeline.plan(batch)
    worked_out = batch_of(pipeline, batch.batch_id).estimate
    assert worked_out is not None
    return worked_out


def test_it_says_what_a_dry_run_would_say(deployed: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.sql("update documents set body = ' ' where id = 'doc-20'")
    first = forecast(deployed, capsys)
    assert first["estimate"] == dry_run(deployed, "dry-1")
    assert (first["estimate"]["planned"], first["estimate"]["to_send"], first["never_sent"]) == (20, 19, 1)
    assert first["parameters"] == {"customer": None, "shortest": 0}

    few = forecast(deployed, capsys, "--filter", "customer=acme", "--filter", "shortest=50", "--limit", "3")
    assert few["estimate"] == dry_run(deployed, "dry-2", customer="acme", shortest=50, limit=3)
    assert few["estimate"]["to_send"] == 3
    assert few["parameters"] == {"customer": "acme", "shortest": 50}


def test_what_has_an_answer_or_gave_up_for_good_is_settled_without_a_call(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.edit("job.yaml", "publish:", "gaps: {min_completion: 0.5}\npublish:")
    set_faults(deployed.simulator, line_error=[{"match": "-4$", "status": 400, "code": "invalid_value", "times": None}])
    run_unchecked(deployed)
    deployed.sql("update documents set version = '2' where id in ('doc-01', 'doc-02')")
    seen = forecast(deployed, capsys)
    assert seen["estimate"] == dry_run(deployed, "dry-1")
    assert (seen["estimate"]["to_send"], seen["estimate"]["reused"], seen["gave_up"]) == (2, 17, 1)
    again = forecast(deployed, capsys, "--reprocess")
    assert again["estimate"] == dry_run(deployed, "dry-2", reprocess=True)
    assert (again["estimate"]["to_send"], again["gave_up"]) == (20, 0)


def test_answers_that_passed_other_rules_are_counted_apart(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    run_unchecked(deployed)
    deployed.write("output.py", (deployed.folder / "output.py").read_text("utf-8") + "\n# edited\n")
    seen = forecast(deployed, capsys)
    assert (seen["estimate"]["reused"], seen["checked_again"]) == (20, 20)
    assert "20 stored answers of other rules than today's" in run(deployed, capsys)[1]


@pytest.mark.parametrize(
    "row",
    [
        "'doc-07', '2', 'zeta', 'The same id, another tenant.'",
        "'', '1', 'acme', 'No id.'",
        "null, '1', 'acme', 'No id.'",
    ],
)
def test_rows_that_a_run_would_refuse_are_refused_in_the_same_words(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str], row: str
) -> None:
    deployed.sql(f"insert into documents values ({row})")
    with pytest.raises(SourceError) as refused:
        deployed.freeze(dry_run=True)
    code, out, err = run(deployed, capsys)
    assert (code, out) == (1, "")
    assert refused.value.cause in err
    assert refused.value.remedy in err


@pytest.mark.parametrize("options", [[], ["--reprocess"]])
def test_a_content_that_changed_under_one_version_is_refused_in_the_same_words(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    run_unchecked(deployed)
    deployed.sql("update documents set body = ' ' where id = 'doc-01'")
    deployed.sql("update documents set body = 'Another text.' where id in ('doc-03', 'doc-05', 'doc-09')")
    with pytest.raises(SourceError, match=r"'doc-01'.*'doc-03'.*'doc-05'") as refused:
        deployed.freeze("changed")
    code, out, err = run(deployed, capsys, *options)
    assert (code, out) == (1, "")
    assert refused.value.cause in err
    assert refused.value.remedy in err


def test_it_writes_and_sends_nothing(deployed: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    forecast(deployed, capsys)
    for table in ("batch", "contract", "item", "transition"):
        assert deployed.sql(f"select count(*) from nightmill.{table}") == [(0,)]
    assert not deployed.store.exists()
    assert deployed.simulator.books(summary=True)["batches"] == []


def test_people_read_items_tokens_price_and_when_it_will_have_finished(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(deployed, capsys, "--filter", "customer=umbrella")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "notes: nothing was written or sent"
    assert lines[1] == "estimate: 11 of 11 items to send in 2 shards; 0 settled without a call, 0 of them reused"
    assert lines[2].startswith("tokens: ")
    assert lines[2].endswith("in, up to 550 out")
    assert lines[3].startswith("price: at most $0.00")
    assert lines[4].startswith("finish: 1 wave, about 60 min at the expected turnaround, 20")
    assert lines[4].endswith("UTC if sent now")
    assert lines[5:] == ["query parameters: customer=umbrella, shortest=0"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--filter", "custmer=acme"], "no filter 'custmer' (did you mean 'customer'?)"),
        (["--filter", "customer"], "--filter customer has no value"),
        (["--filter", "x"], "--filter is no NAME=VALUE"),
        (["--filter", "customer=acne"], "expected one of acme, umbrella; did you mean 'acme'?"),
        (["--filter", "customer=hunter2"], "--filter customer: expected one of acme, umbrella"),
        (["--filter", "shortest=-1"], "--filter shortest: expected at least 0"),
    ],
)
def test_a_wrong_choice_is_said_with_its_remedy(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    code, out, err = run(deployed, capsys, *options)
    assert (code, out) == (1, "")
    assert said in err
    assert "remedy: " in err
    assert "hunter2" not in err


def test_a_job_that_does_not_exist_and_one_with_a_mistake_are_named(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estimate", "note", "--jobs", str(deployed.folder.parent)]) == 1
    assert "There is no job folder 'note' (did you mean 'notes'?)." in capsys.readouterr().err
    deployed.edit("job.yaml", "model:", "modle:")
    code, _, err = run(deployed, capsys)
    assert code == 1
    assert "provider.modle: unknown key; did you mean 'model'?" in err


def test_a_nightly_query_gets_the_interval_that_was_given(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.edit("job.yaml", "where (", "where %(data_interval_start)s <= '2026-01-02'::timestamptz and (")
    code, _, err = run(deployed, capsys)
    assert code == 1
    assert "Fill in the data interval" in err
    assert forecast(deployed, capsys, "--data-interval-start", "2026-01-01")["estimate"]["planned"] == 20
    assert forecast(deployed, capsys, "--data-interval-start", "2026-01-03")["estimate"]["planned"] == 0

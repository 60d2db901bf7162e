"""`python -m nightmill compare A B`: two batches side by side."""

from __future__ import annotations

import json

import pytest
from support.pipeline import Pipeline
from support.steps import run_unchecked, set_faults

from nightmill.cli.commands import main


@pytest.fixture
def deployed(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", pipeline.writer_dsn)
    monkeypatch.setenv("AIRFLOW_CONN_SOURCE", pipeline.admin_dsn)
    monkeypatch.delenv("NIGHTMILL_OBJECT_STORE_CONN_ID", raising=False)
    monkeypatch.setenv("NIGHTMILL_OBJECT_STORE", f"file://{pipeline.store}")
    return pipeline


def refused(capsys: pytest.CaptureFixture[str], *numbers: object) -> str:
    assert main(["compare", *map(str, numbers)]) == 1
    return capsys.readouterr().err


def test_two_prompts_are_told_apart_by_what_they_accept_get_right_and_cost(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.sql(
        "insert into nightmill.price (model, effective_from, input_per_million, cached_input_per_million, "
        "output_per_million, batch_discount) values ('echo-1', '2020-01-01', 2000, 1000, 8000, 0.5) "
        "on conflict (model, effective_from) do nothing"
    )
    deployed.sql("create table known as select id as source_id, 0 as pages from documents where id <= 'doc-10'")
    deployed.edit("job.yaml", "publish:", "gold: {query: select * from known, fields: [pages]}\npublish:")
    deployed.edit("job.yaml", "max_attempts: 3", "max_attempts: 2")
    first = run_unchecked(deployed)
    deployed.write("prompt.md", "Guess how many pages this has, and say so. {{ body }}")
    set_faults(
        deployed.simulator,
        answer=[{"kind": "degraded", "match": "-[0-4]$", "times": None}],
        line_error=[{"match": "-9$", "times": 1}],
    )
    second = run_unchecked(deployed, "run-2")
    pair = (str(first.batch.batch_id), str(second.batch.batch_id))
    assert main(["compare", *pair]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    told = {line[:38].strip(): line[38:].split() for line in text.splitlines() if line.startswith("  ")}
    assert told["accepted"] == ["20", "(100.0%)", "20", "(100.0%)"]
    assert told["requests per item asked for"] == ["1.00", "1.05"]
    assert told["cost"][0].startswith("$")
    assert "rows: 0 the same, 20 changed, 0 only in A, 0 only in B" in text
    assert "100.0% (72.2% to 100.0%)" in text
    assert "50.0% (23.7% to 76.3%)" in text
    assert "tenant acme" in text
    assert "all items: the accuracy of pages fell by 50.0% (10 counted; max_accuracy_drop is 2.0%)" in text

    assert main(["compare", *pair, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    whole = found["slices"][0]
    assert (found["old"]["batch_id"], found["new"]["batch_id"]) == (first.batch.batch_id, second.batch.batch_id)
    assert whole["fields"]["pages"]["drop"]["value"] == 0.5
    assert float(whole["old"]["cost"]) == pytest.approx(float(first.receipt.paid)) if first.receipt else False
    assert float(whole["new"]["cost"]) == pytest.approx(float(second.receipt.paid)) if second.receipt else False


def test_by_key_a_batchs_rows_count_once_although_what_is_shown_holds_them_too(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.edit("job.yaml", "publish: {view: notes}", "publish: {view: keyed, mode: by_key}")
    deployed.apply()
    run_unchecked(deployed)
    run_unchecked(deployed, "run-2")
    assert main(["compare", "1", "2"]) == 0
    assert "rows: 20 the same, 0 changed, 0 only in A, 0 only in B" in capsys.readouterr().out


def test_what_cannot_be_compared_is_named_with_the_way_out(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run_unchecked(deployed).batch.batch_id
    assert "There is no batch 99." in refused(capsys, done, 99)
    assert f"Both are batch {done}." in refused(capsys, done, done)
    dry = deployed.freeze("run-2", dry_run=True).batch_id
    assert f"Batch {dry} was a dry run" in refused(capsys, done, dry)
    deployed.write("prompt.md", "Another one: {{ body }}")
    open_ = deployed.freeze("run-3").batch_id
    assert f"Batch {open_} is PLANNING (" in refused(capsys, done, open_)
    deployed.edit("job.yaml", "view: notes", "view: others")
    deployed.apply()
    other = run_unchecked(deployed, "run-4").batch.batch_id
    said = refused(capsys, done, other)
    assert f"Batch {done} is of results.notes, batch {other} of results.others." in said
    assert "remedy: Compare two batches of one view." in said

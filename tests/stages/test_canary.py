"""No text of a document outside the payload store, the provider and the result tables."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from support.pipeline import Pipeline
from support.steps import one_shard, reconciled, run_unchecked, set_faults

from dev.practice_provider.server import RunningSimulator
from nightmill.console.app import create_app
from nightmill.domain.errors import NightmillError
from nightmill.gates import question_text
from nightmill.gates.port import Waiting
from nightmill.stages import reconcile
from nightmill.storage.batches import Batch

CANARY = "CANARYBIRD"
WATCHED = (
    "batch", "contract", "shard", "provider_batch", "attempt", "outcome", "item", "transition", "gate_verdict",
    "quarantine", "payload_segment", "publication", "published", "dead_letter",
)  # fmt: skip


def test_no_document_text_reaches_logs_exceptions_or_the_ledgers_working_tables(
    pipeline: Pipeline,
    start_simulator: Callable[..., RunningSimulator],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Answers quote the document; of the failing ones each fails in a way of its own."""
    caplog.set_level(logging.DEBUG)
    pipeline.sql("update documents set body = %s || body", f"{CANARY} ")
    pipeline.sql("update documents set body = '' where id = 'doc-20'")
    gold = [{"match": f"Text number {n}.", "answer": {"title": f"{CANARY} Text", "pages": n}} for n in range(9, 20)]
    bad = [f"{CANARY} is not JSON", {"title": CANARY, "pages": CANARY}, {"title": CANARY, CANARY: 1, "pages": 1}]
    gold += [{"match": f"Text number {n}.", "answer": answer} for n, answer in enumerate(bad, 1)]
    gold += [{"match": "Text number 4.", "answer": {"title": f"{CANARY} invented this quotation", "pages": 1}}]
    gold += [{"match": "Text number 5.", "answer": None, "refusal": f"{CANARY}: no"}]
    gold += [{"match": "Text number 6.", "answer": CANARY, "finish_reason": "length"}]
    path = tmp_path / "gold.jsonl"
    path.write_text("\n".join(map(json.dumps, gold)))
    pipeline.simulator = start_simulator(gold_path=path)
    pipeline.edit("job.yaml", "model: echo-1", "model: gold-1")
    pipeline.edit("job.yaml", "publish:", "validation: {citations: [{quote: title, source: body}]}\npublish:")
    batch, shard = one_shard(pipeline)
    set_faults(pipeline.simulator, line_error=[{"match": "-8$", "times": None}])
    pipeline.drive([shard])
    failures = []
    with contextlib.suppress(NightmillError):
        try:
            reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
        except NightmillError as fault:
            failures.append(str(fault))
            raise
    assert len(failures) == 1

    assert pipeline.sql("select count(*) from nightmill.dead_letter where message <> ''")[0][0] >= 8
    for table in WATCHED:
        held = pipeline.sql(f"select count(*) from nightmill.{table} as t where t::text like %s", f"%{CANARY}%")
        assert held == [(0,)], table
    assert CANARY not in caplog.text
    assert CANARY not in failures[0]
    assert CANARY not in asked_of_a_person(pipeline, batch)
    # The search finds what it looks for where it may stand.
    assert pipeline.sql("select count(*) > 0 from nightmill.result as t where t::text like %s", f"%{CANARY}%") == [
        (True,)
    ]
    assert _logged(caplog) > 3


def test_no_text_of_documents_answers_or_known_answers_leaves_a_comparison(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    """Texts are compared in the process, by a measure that has to see them; the batch is stopped and the page shown."""
    caplog.set_level(logging.DEBUG)
    pipeline.sql(
        "create table known as select id as source_id, %s || id as title, 0 as pages from documents", f"{CANARY} knows "
    )
    pipeline.edit("job.yaml", "publish:", "gold: {query: select * from known, fields: [title, pages]}\npublish:")
    pipeline.edit("job.yaml", "publish:", "compare: {fields: {title: {measure: normalised}}}\npublish:")
    pipeline.write("prompt.md", "{{ body }}")
    run_unchecked(pipeline)
    pipeline.sql("update documents set body = %s || body, version = '2'", f"{CANARY} ")
    pipeline.sql("delete from documents where id = 'doc-20' or id = 'doc-19'")
    batch = pipeline.freeze("run-2")
    pipeline.drive(pipeline.plan(batch))
    with pytest.raises(NightmillError, match="of compare broken") as stopped:
        reconciled(pipeline, batch)

    with pipeline.env.ledger() as conn:
        app = create_app(lambda: None, lambda: contextlib.nullcontext(conn), "s3://here")
        page = TestClient(app).get(f"/compare/{batch.batch_id}", params={"dag_id": "nightmill_test"})
    assert "18 (100.0%)" in page.text
    for table in WATCHED:
        held = pipeline.sql(f"select count(*) from nightmill.{table} as t where t::text like %s", f"%{CANARY}%")
        assert held == [(0,)], table
    assert [CANARY in text for text in (caplog.text, str(stopped.value), page.text)] == [False] * 3
    assert pipeline.sql(f"select count(*) from nightmill.rows_notes where title like '{CANARY}%'") == [(18,)]
    assert _logged(caplog) > 3


def asked_of_a_person(pipeline: Pipeline, batch: Batch) -> str:
    """The question about the batch, in Airflow's database."""
    waiting = Waiting("an approval", {"asked_at": "2026-12-01T00:00:00", "on_timeout": "wait"})
    with pipeline.env.ledger() as conn:
        asked = question_text.of(conn, batch, waiting, "page")
    assert "dead_lettered/" in asked.body
    return asked.subject + asked.body


def _logged(caplog: pytest.LogCaptureFixture) -> int:
    return len([record for record in caplog.records if record.name.startswith("nightmill.")])

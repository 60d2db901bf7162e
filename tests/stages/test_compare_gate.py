"""The gate compare: what it counts, what stops a batch, and what it records."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import batch_of, publish_unchecked, reconciled, run_unchecked, set_faults

from nightmill.domain.errors import Blocked
from nightmill.domain.states import BatchState
from nightmill.stages import publish
from nightmill.storage import publications

COMPARE = "compare: {}\npublish:"
GOLD = "gold: {query: select * from known, fields: [pages, title]}\npublish:"
WORSE = "{% if tenant == 'umbrella' %}Guess the number of pages. {% endif %}{{ body }}\n"


def recorded(pipeline: Pipeline, batch_id: int) -> dict[str, Any]:
    """The details of the newest verdict."""
    rows = pipeline.sql(
        "select details from nightmill.gate_verdict where gate = 'compare' and batch_id = %s "
        "order by verdict_id desc limit 1",
        batch_id,
    )
    return rows[0][0]  # type: ignore[no-any-return]


def part(details: dict[str, Any], by: str, name: str = "") -> dict[str, Any]:
    """What was recorded of one slice."""
    (found,) = (one for one in details["slices"] if (one["by"], one["name"]) == (by, name))
    return found


def new_batch(pipeline: Pipeline, run_id: str = "run-2") -> int:
    """A batch whose items are settled."""
    batch = pipeline.freeze(run_id)
    pipeline.drive(pipeline.plan(batch))
    return batch.batch_id


def night_of(pipeline: Pipeline, run_id: str, interval: dict[str, datetime]) -> int:
    """A batch of an interval that has passed its gates."""
    batch = pipeline.freeze(run_id, **interval)
    pipeline.drive(pipeline.plan(batch))
    reconciled(pipeline, batch)
    return batch.batch_id


def test_the_first_result_is_compared_with_nothing_and_passes(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", COMPARE)
    made = run_unchecked(pipeline)
    details = recorded(pipeline, made.batch.batch_id)
    assert (details["baseline"], details["publication"], details["old"]) == (None, None, None)
    assert details["findings"] == []
    assert part(details, "all")["rows"] == {"added": 20, "gone": 0, "kept": 0, "changed": 0}


def test_rows_added_gone_and_changed_are_counted_for_each_slice(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", "compare: {max_gone_share: 0.2}\npublish:")
    first = run_unchecked(pipeline)
    pipeline.sql("delete from documents where id in ('doc-11', 'doc-12')")
    pipeline.sql("update documents set body = 'Other words. ' || body, version = '2' where id in ('doc-01', 'doc-13')")
    pipeline.documents([("doc-21", "1", "acme", "A new text. " * 300)])
    second = run_unchecked(pipeline, "run-2")
    details = recorded(pipeline, second.batch.batch_id)
    assert details["baseline"] == first.batch.batch_id
    assert details["publication"] == 1
    assert details["told"] == ["beside batch 1: 1 row added, 2 not in this batch, 2 of 18 changed"]
    assert part(details, "all")["rows"] == {"added": 1, "gone": 2, "kept": 18, "changed": 2}
    assert part(details, "all")["fields"]["title"]["changed"] == 2
    assert part(details, "all")["fields"]["pages"]["changed"] == 0
    assert part(details, "tenant", "acme")["rows"] == {"added": 1, "gone": 0, "kept": 9, "changed": 1}
    assert part(details, "tenant", "umbrella")["rows"] == {"added": 0, "gone": 2, "kept": 9, "changed": 1}
    assert part(details, "length", "1,000 to 3,999 tokens")["rows"]["added"] == 1
    new, old = part(details, "all")["new"], part(details, "all")["old"]
    assert (new["accepted"], new["fresh"], new["asked"], new["attempts"]) == (19, 3, 3, 3)
    assert (old["accepted"], old["fresh"], old["attempts"]) == (20, 20, 20)
    assert new["prompt_tokens"] > 0


def test_a_prompt_made_worse_for_one_tenant_is_stopped_although_the_average_hardly_moves(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline.sql("delete from documents")
    pipeline.documents([(f"a-{n:04}", "1", "acme", f"Text {n}.") for n in range(2_380)])
    pipeline.documents([(f"u-{n:04}", "1", "umbrella", f"Text {n}.") for n in range(20)])
    pipeline.sql("create table known as select id as source_id, 0 as pages, null::text as title from documents")
    pipeline.edit("job.yaml", "publish:", GOLD)
    pipeline.edit("job.yaml", "publish:", COMPARE)
    first = run_unchecked(pipeline)
    pipeline.write("prompt.md", WORSE)
    set_faults(pipeline.simulator, answer=[{"kind": "degraded", "text": "Guess the number", "times": None}])
    batch_id = new_batch(pipeline)
    with caplog.at_level(logging.WARNING), pytest.raises(Blocked) as stopped:
        reconciled(pipeline, batch_of(pipeline, batch_id))
    said = (
        "tenant umbrella: the accuracy of pages fell by 100.0% (at least 100.0%, 20 counted; max_accuracy_drop is 2.0%)"
    )
    assert said in stopped.value.cause
    assert said in caplog.text
    details = recorded(pipeline, batch_id)
    whole = part(details, "all")["fields"]["pages"]
    assert 0 < whole["drop"]["value"] < 0.01
    assert details["told"][1:] == ["accuracy of pages: 99.2% of 2,400, 100.0% before", f"broken: {said}"]
    assert whole["accuracy_before"]["value"] == 1
    assert [(one["by"], one["name"], one["limit"]) for one in details["findings"]] == [
        ("tenant", "umbrella", "max_accuracy_drop")
    ]
    blocked = batch_of(pipeline, batch_id)
    assert (blocked.state, blocked.blocked_by) == (BatchState.BLOCKED, "compare")
    assert pipeline.sql("select distinct batch_id from results.notes") == [(first.batch.batch_id,)]

    # It is meant: loosened, and compare cleared.
    pipeline.edit("job.yaml", "compare: {}", "compare: {fields: {pages: {max_accuracy_drop: 1}}}")
    publish_unchecked(pipeline, batch_of(pipeline, batch_id))
    assert pipeline.sql("select distinct batch_id from results.notes") == [(batch_id,)]


def test_few_items_of_a_slice_do_not_stop_a_batch_by_chance(pipeline: Pipeline) -> None:
    pipeline.sql("create table known as select id as source_id, 0 as pages, null::text as title from documents")
    pipeline.edit("job.yaml", "publish:", GOLD)
    pipeline.edit("job.yaml", "publish:", "compare: {max_accuracy_drop: 0.1, min_slice_items: 5}\npublish:")
    run_unchecked(pipeline)
    pipeline.write("prompt.md", "Again. {{ body }}")
    set_faults(pipeline.simulator, answer=[{"kind": "degraded", "match": "-3$", "times": None}])
    made = run_unchecked(pipeline, "run-2")
    details = recorded(pipeline, made.batch.batch_id)
    acme = part(details, "tenant", "acme")["fields"]["pages"]["drop"]
    assert acme["value"] > 0.1 > acme["low"]
    assert details["findings"] == []


def test_gone_rows_stop_a_run_and_not_a_preview_of_a_few(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", COMPARE)
    run_unchecked(pipeline)
    pipeline.sql("delete from documents where id > 'doc-15'")
    batch_id = new_batch(pipeline)
    with pytest.raises(Blocked, match=r"1 limit of compare broken: all items: 25\.0% of the rows are gone \(20"):
        reconciled(pipeline, batch_of(pipeline, batch_id))
    preview = pipeline.freeze("run-3", publish="no")
    pipeline.drive(pipeline.plan(preview))
    reconciled(pipeline, preview)
    details = recorded(pipeline, preview.batch_id)
    assert (details["preview"], details["findings"]) == (True, [])
    assert part(details, "all")["rows"]["gone"] == 5


def test_fields_are_compared_as_the_job_says(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", "compare: {fields: {title: {measure: normalised}}}\npublish:")
    pipeline.write("prompt.md", "{{ body }}")
    run_unchecked(pipeline)
    pipeline.sql("update documents set body = upper(body), version = '2'")
    made = run_unchecked(pipeline, "run-2")
    details = recorded(pipeline, made.batch.batch_id)
    assert part(details, "all")["rows"]["changed"] == 0
    assert details["fields"] == {"title": "normalised", "pages": "exact"}


def test_an_interval_is_compared_with_the_same_interval_and_may_not_lose_most_of_its_rows(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish: {view: notes}", "publish: {view: nights, mode: by_interval}")
    pipeline.apply()
    days = [datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2, 3)]
    first = {"data_interval_start": days[0], "data_interval_end": days[1]}
    second = {"data_interval_start": days[1], "data_interval_end": days[2]}
    night = run_unchecked(pipeline, "run-1", **first)
    other = night_of(pipeline, "run-2", second)
    assert recorded(pipeline, other)["baseline"] is None
    pipeline.sql("delete from documents where id > 'doc-09'")
    with pytest.raises(Blocked) as stopped:
        night_of(pipeline, "run-3", first)
    said = "1 limit of compare broken: 55.0% of the 20 rows that are shown of this interval are gone (publish.max_loss"
    assert said in stopped.value.cause
    ((again,),) = pipeline.sql("select max(batch_id) from nightmill.batch")
    details = recorded(pipeline, again)
    assert (details["baseline"], part(details, "all")["rows"]["gone"]) == (night.batch.batch_id, 11)
    pipeline.edit("job.yaml", "mode: by_interval", "mode: by_interval, max_loss: 0.6")
    reconciled(pipeline, batch_of(pipeline, again))


def test_a_run_that_replaces_several_intervals_is_compared_with_the_rows_of_all_of_them(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish: {view: notes}", "publish: {view: nights, mode: by_interval}")
    pipeline.apply()
    days = [datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2, 3)]
    pipeline.sql("create table everything as select * from documents")
    for number, half in enumerate(("id <= 'doc-10'", "id > 'doc-10'")):
        pipeline.sql("delete from documents")
        pipeline.sql(f"insert into documents select * from everything where {half}")
        run_unchecked(pipeline, f"night-{number}", data_interval_start=days[number], data_interval_end=days[number + 1])
    pipeline.sql("delete from documents where id > 'doc-18'")  # 8 of the second night, none of the first
    both: dict[str, Any] = {"data_interval_start": days[0], "data_interval_end": days[2]}
    wide = pipeline.freeze("wide", params={"replace_intervals": True}, **both)
    pipeline.drive(pipeline.plan(wide))
    with pytest.raises(Blocked, match=r"60\.0% of the 20 rows that are shown of this interval are gone"):
        reconciled(pipeline, wide)
    pipeline.edit("job.yaml", "mode: by_interval", "mode: by_interval, max_loss: 0.6")
    publish_unchecked(pipeline, batch_of(pipeline, wide.batch_id))
    assert pipeline.sql("select batch_id, count(*) from results.nights group by 1") == [(wide.batch_id, 8)]


def test_a_row_that_stands_in_for_a_gap_is_no_answer(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0.8, rules: [{show: null_row}]}\npublish:")
    pipeline.edit("job.yaml", "publish:", "compare: {max_gone_share: 0.1}\npublish:")
    run_unchecked(pipeline)
    pipeline.write("prompt.md", "Once more: {{ body }}")
    for run_id, gone in (("run-2", 1), ("run-3", 0)):
        set_faults(pipeline.simulator, line_error=[{"match": "-4$", "status": 400, "code": "bad", "times": None}])
        made = run_unchecked(pipeline, run_id)
        assert pipeline.sql("select count(*), count(result_id) from results.notes") == [(20, 19)]
        rows = part(recorded(pipeline, made.batch.batch_id), "all")["rows"]
        assert (rows["gone"], rows["kept"], rows["added"]) == (gone, 19, 0)


def test_publish_refuses_what_was_compared_with_another_result_than_readers_see(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", COMPARE)
    first, second = run_unchecked(pipeline), run_unchecked(pipeline, "run-2")
    third = batch_of(pipeline, new_batch(pipeline, "run-3"))
    reconciled(pipeline, third)
    assert recorded(pipeline, third.batch_id)["baseline"] == second.batch.batch_id
    with pipeline.env.ledger() as conn:
        publications.flip(conn, "notes", "rollback", [publications.part_of(first.batch)], "tester")
        conn.commit()
    with pytest.raises(
        Blocked, match=r"compare looked at batch 3 beside batch 2, and .* shows batch 1 now\. Remedy: Cl"
    ):
        publish.run(pipeline.env, pipeline.live, third.batch_id, "tester")
    publish_unchecked(pipeline, third)
    assert recorded(pipeline, third.batch_id)["baseline"] == first.batch.batch_id


def test_items_that_give_up_count_for_their_tenant(pipeline: Pipeline) -> None:
    pipeline.edit(
        "job.yaml", "publish:", "gaps: {min_completion: 0}\ncompare: {max_reject_rate: 0.5, "
        "min_slice_items: 5, max_gone_share: null, confidence: 0.8}\npublish:",
    )  # fmt: skip
    set_faults(pipeline.simulator, line_error=[{"match": "-[0-8]$", "status": 400, "code": "bad", "times": None}])
    batch_id = new_batch(pipeline, "run-1")
    with pytest.raises(Blocked, match=r"tenant acme: 100\.0% of the items gave up \(at least \d\d\.\d%, 9 "):
        reconciled(pipeline, batch_of(pipeline, batch_id))
    assert part(recorded(pipeline, batch_id), "tenant", "umbrella")["new"]["rejected"] == 0


def test_what_is_recorded_is_small_and_holds_no_text(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", COMPARE)
    run_unchecked(pipeline)
    pipeline.sql("update documents set body = 'CANARY ' || body, version = '2'")
    made = run_unchecked(pipeline, "run-2")
    text = json.dumps(recorded(pipeline, made.batch.batch_id))
    assert "CANARY" not in text
    assert "Text number" not in text
    assert len(text) < 8_000

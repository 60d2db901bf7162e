"""freeze_snapshot: what is frozen, what is refused, and what later edits can no longer change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.request import urlopen

import pytest
from support.pipeline import PROMPT, Pipeline
from support.steps import counts, paid_once, publish_unchecked, run_unchecked, set_faults

from nightmill.domain.errors import SourceError
from nightmill.domain.states import BatchState
from nightmill.storage import payloads


def test_source_rows_edited_and_deleted_after_the_freeze_change_nothing_in_the_batch(pipeline: Pipeline) -> None:
    batch = pipeline.freeze()
    pipeline.sql("update documents set body = 'Edited afterwards.', version = '2' where id < 'doc-10'")
    pipeline.sql("delete from documents where id >= 'doc-15'")
    pipeline.sql("insert into documents values ('doc-99', '1', 'acme', 'Too late.')")
    pipeline.drive(pipeline.plan(batch))
    publish_unchecked(pipeline, batch)

    rows = pipeline.sql("select source_id, source_version, title from results.notes order by source_id")
    assert [row[0] for row in rows] == [f"doc-{n:02}" for n in range(1, 21)]
    assert {row[1] for row in rows} == {"1"}
    assert all(f"Text number {n}" in title for n, (_, _, title) in enumerate(rows, 1))


def test_prompt_and_output_model_edited_in_mid_run_change_the_next_run_only(pipeline: Pipeline) -> None:
    batch = pipeline.freeze()
    pipeline.write("prompt.md", PROMPT.replace("Summarise this document.", "Another prompt."))
    pipeline.edit("output.py", "pages: int", "pages: int\n    extra: str")
    shards = pipeline.plan(batch)
    pipeline.drive(shards)
    publish_unchecked(pipeline, batch)
    titles = pipeline.sql("select title from results.notes")
    assert all(title.startswith("Summarise this document.") for (title,) in titles)

    pipeline.apply()
    run_unchecked(pipeline, "run-2")
    rows = pipeline.sql("select title, extra from results.notes")
    assert len(rows) == 20
    assert all(title.startswith("Another prompt.") and extra == title for title, extra in rows)


def test_clearing_freeze_returns_the_manifest_that_exists(pipeline: Pipeline) -> None:
    first = pipeline.freeze()
    pipeline.documents([("doc-21", "1", "acme", "Late.")])
    again = pipeline.freeze(first_try=False)
    assert (again.batch_id, again.item_count) == (first.batch_id, 20)


def test_a_first_try_with_a_run_id_that_was_used_before_opens_a_new_incarnation(pipeline: Pipeline) -> None:
    first = pipeline.freeze()
    second = pipeline.freeze()
    assert (first.incarnation, second.incarnation) == (1, 2)
    assert second.batch_id != first.batch_id
    assert pipeline.freeze(first_try=False).batch_id == second.batch_id


def test_a_source_that_returns_an_id_twice_is_refused_with_the_id(pipeline: Pipeline) -> None:
    pipeline.documents([("doc-07", "2", "zeta", "The same id once more.")])
    with pytest.raises(SourceError, match=r"'doc-07' more than once\. Remedy: Make source\.columns\.id unique"):
        pipeline.freeze()
    assert pipeline.sql("select * from nightmill.item") == []


def test_one_version_with_two_contents_is_refused_with_id_and_version(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    pipeline.sql("update documents set body = 'Changed in silence.' where id = 'doc-05'")
    with pytest.raises(SourceError, match=r"'doc-05' \(version 1\).*Remedy: Let source\.columns\.version change"):
        pipeline.freeze("run-2")


def test_a_null_id_is_refused(pipeline: Pipeline) -> None:
    pipeline.sql("insert into documents values (null, '1', 'acme', 'Nameless.')")
    with pytest.raises(SourceError, match="'id' is null"):
        pipeline.freeze()


def test_a_blank_id_is_refused(pipeline: Pipeline) -> None:
    pipeline.sql("insert into documents values ('', '1', 'acme', 'Nameless.')")
    with pytest.raises(SourceError, match=r"'id' is empty or only white space\. Remedy: Leave such rows out"):
        pipeline.freeze()
    assert pipeline.sql("select * from nightmill.item") == []


def test_a_refused_freeze_that_is_cleared_goes_by_the_mended_job_folder(pipeline: Pipeline) -> None:
    pipeline.sql("insert into documents values (null, '1', 'acme', 'Nameless.')")
    with pytest.raises(SourceError):
        pipeline.freeze()
    pipeline.edit("job.yaml", "from documents", "from documents where id is not null")
    mended = pipeline.freeze(first_try=False)
    assert (mended.state, mended.item_count, mended.incarnation) == (BatchState.PLANNING, 20, 2)
    assert pipeline.sql("select state from nightmill.batch where incarnation = 1") == [("CANCELLED",)]


def test_without_a_version_column_the_content_hash_is_the_version(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "version: version, ", "")
    run_unchecked(pipeline)
    pipeline.sql("update documents set body = 'Changed.' where id = 'doc-05'")
    report = run_unchecked(pipeline, "run-2")
    assert report.counts == {"accepted": 1, "reused": 19}
    [(version,)] = pipeline.sql("select source_version from results.notes where source_id = 'doc-05'")
    assert len(version) == 64
    paid_once(pipeline, 21)


def test_an_empty_source_publishes_an_empty_batch(pipeline: Pipeline) -> None:
    run_unchecked(pipeline)
    pipeline.sql("delete from documents")
    report = run_unchecked(pipeline, "run-2")
    assert (report.batch.state, report.batch.item_count, report.counts) == (BatchState.PUBLISHED, 0, {})
    assert pipeline.sql("select * from results.notes") == []


def test_blank_documents_are_excluded_without_a_call(pipeline: Pipeline) -> None:
    pipeline.sql("update documents set body = ' \n\t ' where id = 'doc-01'")
    pipeline.sql("update documents set body = null where id = 'doc-20'")
    report = run_unchecked(pipeline)
    assert report.counts == {"accepted": 18, "excluded": 2}
    assert report.shown is not None
    assert report.shown.gaps == 0
    paid_once(pipeline, 18)


def test_documents_over_the_context_window_are_dead_lettered_without_a_call(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "  model: echo-1", "  model: echo-1\n  context_window_tokens: 100")
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0.1}\npublish:")
    report = run_unchecked(pipeline)
    over = report.counts["dead_lettered"]
    assert report.counts == {"accepted": 20 - over, "dead_lettered": over}
    assert 0 < over < 20
    assert report.gaps == [("dead_lettered/input/over_context", over)]
    letters = pipeline.sql("select class, code, attempts from nightmill.dead_letter")
    assert letters == [("input", "over_context", 0)] * over
    [(message,)] = pipeline.sql("select distinct message from nightmill.dead_letter")
    assert "longer than provider.context_window_tokens; shorten the text in the source query" in message
    # The window holds prompt and answer: exactly those items fit whose tokens leave the reserve of 50.
    assert pipeline.sql("select count(*) from nightmill.item where tokens + 50 > 100") == [(over,)]
    paid_once(pipeline, 20 - over)


def test_the_data_interval_is_bound_as_query_parameters_and_recorded(pipeline: Pipeline) -> None:
    pipeline.sql("alter table documents add column at timestamptz")
    pipeline.sql("update documents set at = '2026-01-01'::timestamptz + right(id, 2)::int * interval '1 day'")
    pipeline.edit(
        "job.yaml",
        "from documents",
        "from documents where at >= %(data_interval_start)s and at < %(data_interval_end)s",
    )
    start, end = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 8, tzinfo=UTC)
    batch = pipeline.freeze(data_interval_start=start, data_interval_end=end)
    assert [row[0] for row in pipeline.sql("select source_id from nightmill.item order by ordinal")] == [
        "doc-04",
        "doc-05",
        "doc-06",
    ]
    [(parameters,)] = pipeline.sql("select source_parameters from nightmill.batch")
    assert parameters == {"data_interval_start": start.isoformat(), "data_interval_end": end.isoformat()}
    assert batch.data_interval_end == end


def test_a_query_that_needs_the_interval_of_a_run_without_one_fails_with_the_remedy(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "from documents", "from documents where now() > %(data_interval_start)s")
    with pytest.raises(SourceError, match=r"data_interval_start.*Remedy: Fill in the data interval of a new run"):
        pipeline.freeze()
    at = datetime(2026, 1, 2, tzinfo=UTC)
    with pytest.raises(SourceError, match=r"2026-01-02.* to 2026-01-01.*, holds nothing"):
        pipeline.freeze("run-2", data_interval_start=at, data_interval_end=at - timedelta(days=1))
    assert pipeline.sql("select count(*) from nightmill.batch") == [(0,)]  # so there is none whose clearing cannot help


AWKWARD = (
    'Braces {{ body }} {% raw %} {0} "quotes" \\n back\\slash \u2028 \u2029 \x85 合同第一条 🦉 </user> <!-- system -->'
)


def test_awkward_text_goes_through_unharmed_and_unescaped(pipeline: Pipeline) -> None:
    pipeline.sql("delete from documents")
    pipeline.documents([("doc-1", "1", "客户", AWKWARD), ("doc-2", "1", "客户", "Plain.")])
    batch = pipeline.freeze()
    with pipeline.env.ledger() as conn:
        frozen = payloads.Documents(conn, pipeline.env.payloads, batch.batch_id)
        assert frozen.of(0) == {"body": AWKWARD}
    shards = pipeline.plan(batch)
    set_faults(pipeline.simulator, hold=True)
    for shard in shards:
        pipeline.wake(shard)
    sent = b""
    for (file_id,) in pipeline.sql("select input_ref from nightmill.provider_batch"):
        with urlopen(f"{pipeline.simulator.base_url}/files/{file_id}/content", timeout=10) as answer:
            sent += answer.read()
    set_faults(pipeline.simulator)
    pipeline.drive(shards)

    assert "合同第一条 🦉".encode() in sent
    assert "\u2028 \u2029 \x85".encode() in sent
    assert b"\\u" not in sent
    assert sent.count(b"\n") == 2
    assert counts(pipeline, batch) == {"accepted": 2}
    publish_unchecked(pipeline, batch)
    [(title,)] = pipeline.sql("select title from results.notes where source_id = 'doc-1'")
    assert title == "Summarise this document.\n\nBraces {{ body }} {%"

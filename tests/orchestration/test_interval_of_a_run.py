"""Which data interval freeze_snapshot gives a run: the form's, else that of the asset events, else Airflow's."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.execution_time.comms import AssetEventDagRunReferenceResult
from airflow.sdk.execution_time.context import TriggeringAssetEventsAccessor
from support.pipeline import Pipeline
from support.steps import run_unchecked

FORM = {"data_interval_start": "2026-01-20T00:00:00+00:00", "data_interval_end": "2026-01-21T00:00:00+00:00"}


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


def event(start: int | None, end: int | None) -> AssetEventDagRunReferenceResult:
    """What publish of another job emitted."""
    ends = (None, None) if start is None or end is None else (day(start).isoformat(), day(end).isoformat())
    said = {"view": "terms", "batch_id": 7, "publish_seq": 3}
    return of_extra(said | dict(zip(("data_interval_start", "data_interval_end"), ends, strict=True)))


def of_extra(extra: dict[str, Any]) -> AssetEventDagRunReferenceResult:
    """An event as Airflow hands it to the run that it started."""
    return AssetEventDagRunReferenceResult.model_validate(
        {
            "asset": {"name": "nightmill.results.terms", "uri": "nightmill://results/terms", "extra": {}},
            "source_aliases": [{"name": "nightmill_terms"}],
            "extra": extra,
            "source_task_id": "publish",
            "source_dag_id": "nightmill_terms",
            "source_run_id": "scheduled__1",
            "source_map_index": -1,
            "timestamp": day(22),
        }
    )


@pytest.fixture
def freeze(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Any:
    from nightmill.orchestration import connections, tasks

    monkeypatch.setattr(connections, "environment", lambda: pipeline.env)

    def run(
        *events: AssetEventDagRunReferenceResult, params: dict[str, Any] | None = None, airflow: tuple[Any, Any]
    ) -> tuple[datetime | None, datetime | None]:
        dag_run = SimpleNamespace(
            dag_id="nightmill_test", run_id="run-1", data_interval_start=airflow[0], data_interval_end=airflow[1]
        )
        context = {
            "params": params or {},
            "dag_run": dag_run,
            "ti": SimpleNamespace(try_number=1, max_tries=5),
            "triggering_asset_events": TriggeringAssetEventsAccessor.build(events),
        }
        monkeypatch.setattr(tasks, "get_current_context", lambda: context)
        batch_id = tasks.freeze_snapshot(str(pipeline.folder))
        [found] = pipeline.sql(
            "select data_interval_start, data_interval_end from nightmill.batch where batch_id = %s", batch_id
        )
        return found[0], found[1]

    return run


def test_a_run_that_an_asset_started_has_the_interval_of_its_event(freeze: Any) -> None:
    assert freeze(event(5, 6), airflow=(None, None)) == (day(5), day(6))


def test_several_events_that_join_make_one_interval(freeze: Any) -> None:
    assert freeze(event(6, 7), event(5, 6), airflow=(None, None)) == (day(5), day(7))


def test_an_event_without_an_interval_gives_the_run_none(freeze: Any) -> None:
    assert freeze(event(None, None), airflow=(None, None)) == (None, None)


def test_the_form_counts_before_events_and_events_before_airflow(freeze: Any) -> None:
    assert freeze(event(5, 6), params=dict(FORM), airflow=(day(1), day(2))) == (day(20), day(21))


def test_events_count_before_airflow(freeze: Any) -> None:
    assert freeze(event(5, 6), airflow=(day(1), day(2))) == (day(5), day(6))


def test_a_scheduled_run_has_airflows_interval(freeze: Any) -> None:
    assert freeze(airflow=(day(1), day(2))) == (day(1), day(2))


def test_a_hole_between_the_events_stops_a_job_that_reads_one_interval_before_it_opens_a_batch(
    freeze: Any, pipeline: Pipeline
) -> None:
    pipeline.edit("job.yaml", "from documents", "from documents where now() >= %(data_interval_start)s")
    with pytest.raises(AirflowFailException, match="their data intervals do not join"):
        freeze(event(5, 6), event(8, 9), airflow=(None, None))
    assert pipeline.sql("select count(*) from nightmill.batch") == [(0,)]


def test_a_hole_stops_a_job_whose_view_has_the_newest_batch_of_each_interval(freeze: Any, pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "{view: notes}", "{view: notes, mode: by_interval}")
    with pytest.raises(AirflowFailException, match="their data intervals do not join"):
        freeze(event(5, 6), event(8, 9), airflow=(None, None))


def test_a_hole_does_not_matter_to_a_job_that_reads_everything(freeze: Any) -> None:
    assert freeze(event(5, 6), event(8, 9), airflow=(None, None)) == (day(5), day(9))


def test_what_publish_says_in_its_event_is_the_interval_of_the_run_that_follows(
    freeze: Any, pipeline: Pipeline
) -> None:
    from nightmill.stages.publish import event_of
    from nightmill.storage import publications

    published = run_unchecked(pipeline, "night", data_interval_start=day(5), data_interval_end=day(6)).batch
    with pipeline.env.ledger() as conn:
        shown = publications.current(conn, published.view_name)
    assert shown is not None
    said = event_of(shown)
    ids = {"view": published.view_name, "batch_id": published.batch_id, "publish_seq": shown.publish_seq}
    assert said.items() >= (ids | {"kind": "publish"}).items()
    assert freeze(of_extra(said), airflow=(None, None)) == (day(5), day(6))

"""docs/guides/schedule.md: its job.yaml is sound, our events start its consumer, and what it says of Airflow is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.execution_time.comms import AssetEventDagRunReferenceResult
from airflow.sdk.execution_time.context import TriggeringAssetEventsAccessor
from support.pipeline import JOB_YAML, OUTPUT, PROMPT
from support.walkthrough import Saved, steps

from nightmill.jobs.check.definition import mistakes_of
from nightmill.jobs.contract import JobDefinition
from nightmill.orchestration import tasks

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "schedule.md").read_text("utf-8")
OF_A_JOB = [block for block in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S) if "dag:" in block]


@pytest.mark.parametrize("settings", OF_A_JOB)
def test_what_the_page_writes_into_job_yaml_is_sound(settings: str) -> None:
    files = {"job.yaml": (JOB_YAML + settings).encode(), "prompt.md": PROMPT.encode(), "output.py": OUTPUT.encode()}
    assert mistakes_of(JobDefinition("nightly", files)) == []


def test_the_pages_job_files_were_found() -> None:
    assert len(OF_A_JOB) == 2


@pytest.fixture
def consumer(tmp_path: Path) -> Any:
    """The DAG of the page, read from a file as Airflow reads it."""
    from airflow.dag_processing.dagbag import DagBag

    (saved,) = (step for step in steps(PAGE) if isinstance(step, Saved))
    path = tmp_path / Path(saved.path).name
    path.write_text(saved.text, "utf-8")
    bag = DagBag(path)
    assert bag.import_errors == {}
    return bag.dags["contract_terms_changed"]


def test_the_consumer_follows_the_asset_that_publish_emits(consumer: Any) -> None:
    assert consumer.timetable.asset_condition == tasks.asset("contract_terms")


def test_the_consumer_works_once_on_each_night_whose_event_came_twice(consumer: Any) -> None:
    nights = consumer.task_dict["nights"].python_callable
    first, second = "2026-02-01T01:00:00+00:00", "2026-02-02T01:00:00+00:00"
    events = [(first, second, 3), (first, second, 3), (first, second, 5), (None, None, 4)]
    found = nights(triggering_asset_events=TriggeringAssetEventsAccessor.build(_event(*one) for one in events))
    assert found == [
        {"start": first, "end": second, "publish_seq": 5},
        {"start": None, "end": None, "publish_seq": 4},
    ]


def test_the_consumer_works_on_each_night_that_a_rollback_changed(consumer: Any) -> None:
    nights = consumer.task_dict["nights"].python_callable
    first, second, third = (f"2026-02-0{day}T01:00:00+00:00" for day in (1, 2, 3))
    back = {"kind": "rollback", "intervals": [[first, second], [second, third]]}
    events = [_event(first, second, 3), _event_of({"view": "contract_terms", "batch_id": 1, "publish_seq": 4} | back)]
    found = nights(triggering_asset_events=TriggeringAssetEventsAccessor.build(iter(events)))
    assert found == [
        {"start": first, "end": second, "publish_seq": 4},
        {"start": second, "end": third, "publish_seq": 4},
    ]


def test_the_page_says_of_a_backfill_what_airflow_does() -> None:
    from airflow.models.backfill import Backfill, ReprocessBehavior

    for behaviour in ReprocessBehavior:
        assert f"| `{behaviour.value}`" in PAGE
    assert f"{Backfill.__table__.c.max_active_runs.default.arg} if you say nothing" in PAGE


def _event(start: str | None, end: str | None, publish_seq: int) -> AssetEventDagRunReferenceResult:
    extra = {"view": "contract_terms", "batch_id": publish_seq, "publish_seq": publish_seq, "kind": "publish"}
    return _event_of(extra | {"data_interval_start": start, "data_interval_end": end})


def _event_of(extra: dict[str, Any]) -> AssetEventDagRunReferenceResult:
    asset = tasks.asset("contract_terms")
    return AssetEventDagRunReferenceResult.model_validate(
        {
            "asset": {"name": asset.name, "uri": asset.uri, "extra": {}},
            "source_aliases": [{"name": tasks.asset_name("contract_terms")}],
            "extra": extra,
            "source_task_id": "publish", "source_dag_id": "nightmill_contract_terms", "source_run_id": "scheduled__1",
            "source_map_index": -1, "timestamp": "2026-02-02T02:00:00Z",
        }
    )  # fmt: skip

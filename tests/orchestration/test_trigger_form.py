"""The trigger form: a job's filters and what every job asks, as Airflow's Params."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import ParamValidationError

from nightmill.jobs.filters import RESERVED
from nightmill.jobs.settings.job import Job
from nightmill.orchestration.trigger_form import trigger_form

JOB: dict[str, Any] = {
    "description": "x",
    "source": {
        "conn_id": "s",
        "query": "select 1",
        "columns": {"id": "id", "text": "body"},
        "filters": {
            "region": {"type": "enum", "values": ["north", "south"], "default": "north", "description": "Which one?"},
            "min_weight": {
                "type": "integer", "minimum": 0, "maximum": 9, "nullable": True, "description": "Weight at least.",
            },
            "since": {"type": "date", "minimum": "2026-01-01", "default": "2026-02-01", "description": "From then on."},
        },
    },
    "provider": {"conn_id": "p", "model": "m"},
    "publish": {"view": "v"},
}  # fmt: skip


@pytest.fixture
def form() -> ParamsDict:
    return ParamsDict(trigger_form(Job.model_validate(JOB)))


def test_a_jobs_filters_come_first_in_a_section_of_their_own(form: ParamsDict) -> None:
    sections = {name: form.get_param(name).schema["section"] for name in form}
    assert list(sections)[:3] == ["region", "min_weight", "since"]
    assert [name for name, section in sections.items() if section == "Filters"] == ["region", "min_weight", "since"]
    assert sections["limit"] == sections["note"] == "This run"
    assert sections["data_interval_start"] == "Data interval"


def test_every_field_has_a_title_and_says_what_it_does(form: ParamsDict) -> None:
    for name in form:
        param = form.get_param(name)
        assert param.schema["title"]
        assert param.description
    assert form.get_param("min_weight").schema["title"] == "Min weight"
    assert form.get_param("min_weight").description == "Weight at least. From 0 to 9. Empty: no restriction."
    assert form.get_param("since").description == "From then on. From 2026-01-01."


def test_the_defaults_pass_and_can_be_stored_as_json(form: ParamsDict) -> None:
    values = form.validate()
    assert {name: values[name] for name in ("region", "min_weight", "since")} == {
        "region": "north", "min_weight": None, "since": "2026-02-01",
    }  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"region": "west"},
        {"region": None},
        {"min_weight": 10},
        {"min_weight": "3"},
        {"since": "soon"},
        {"priority": "high"},
        {"publish": "maybe"},
        {"publish": None},
    ],
)
def test_a_value_outside_the_declaration_is_refused_before_a_run_exists(
    form: ParamsDict, wrong: dict[str, Any]
) -> None:
    with pytest.raises(ParamValidationError):
        form.update(wrong)
        form.validate()


def test_no_filter_can_take_the_name_of_another_field(form: ParamsDict) -> None:
    assert set(form) - JOB["source"]["filters"].keys() <= RESERVED


def test_it_asks_whether_readers_see_the_result_and_auto_is_explained(form: ParamsDict) -> None:
    publish = form.get_param("publish")
    assert (publish.resolve(), publish.schema["enum"]) == ("auto", ["auto", "yes", "no"])
    assert "auto: no for a run with a limit or with a filter that differs from its default" in publish.description
    assert "unless publish says yes" in form.get_param("limit").description


@pytest.mark.parametrize(
    ("where", "warned"),
    [
        ("at >= %(data_interval_start)s and at < %(data_interval_end)s", True),
        ("at < %(data_interval_end)s", False),
        ("true", False),
    ],
)
def test_a_job_of_one_interval_says_in_its_form_that_a_run_replaces_all_others(where: str, warned: bool) -> None:
    job = Job.model_validate(JOB | {"source": JOB["source"] | {"query": f"select 1 where {where}"}})
    said = trigger_form(job)["publish"].description or ""
    assert ("Each run replaces the view: it then shows the rows of that run's interval and no others" in said) == warned


def test_a_job_whose_view_keeps_all_intervals_does_not_say_that() -> None:
    source = JOB["source"] | {"query": "select 1 where at >= %(data_interval_start)s"}
    job = Job.model_validate(JOB | {"source": source, "publish": {"view": "v", "mode": "by_interval"}})
    assert "Each run replaces the view" not in (trigger_form(job)["publish"].description or "")


@pytest.mark.parametrize(
    "runs",
    [
        {"schedule": "0 2 * * *"},
        {"dag": {"after_assets": {"any": [{"view": "terms"}]}}},
        {"schedule": "0 2 * * *", "dag": {"after_assets": {"all": [{"view": "terms"}]}}},
    ],
)
def test_a_form_in_which_airflow_asks_for_the_data_interval_does_not_ask_again(runs: dict[str, Any]) -> None:
    form = ParamsDict(trigger_form(Job.model_validate(JOB | runs)))
    assert {form.get_param(name).schema["section"] for name in form} == {"Filters", "This run"}


def test_airflow_asks_for_no_data_interval_where_a_job_has_no_schedule() -> None:
    """As its form decides: by the summary of the timetable that the API gives."""
    from airflow.api_fastapi.core_api.datamodels.dags import DAGResponse
    from airflow.timetables.assets import AssetOrTimeSchedule
    from airflow.timetables.interval import CronDataIntervalTimetable
    from airflow.timetables.simple import AssetTriggeredTimetable, NullTimetable

    cron = CronDataIntervalTimetable("0 2 * * *", "UTC")
    summary = DAGResponse.get_timetable_summary
    assert summary(NullTimetable().summary) is None
    either = AssetOrTimeSchedule(timetable=cron, assets=[])
    for one in (cron, AssetTriggeredTimetable([]), either):
        assert summary(one.summary) is not None

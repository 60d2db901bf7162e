"""job.yaml: a key that nobody knows is an error, at every level; what nightmill sets itself cannot be set."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from nightmill.jobs.settings.job import Job

MINIMAL: dict[str, Any] = {
    "description": "x",
    "source": {"conn_id": "s", "query": "select 1", "columns": {"id": "id", "text": "body"}},
    "provider": {"conn_id": "p", "model": "m"},
    "publish": {"view": "v"},
}


def with_value(path: str, value: Any) -> dict[str, Any]:
    """The minimal job with one value set at a dotted path."""
    made: dict[str, Any] = {**MINIMAL}
    here = made
    *parents, last = path.split(".")
    for name in parents:
        here[name] = dict(here.get(name, {}))
        here = here[name]
    here[last] = value
    return made


def fault(path: str, value: Any) -> tuple[str, str]:
    with pytest.raises(ValidationError) as caught:
        Job.model_validate(with_value(path, value))
    first = caught.value.errors()[0]
    return ".".join(map(str, first["loc"])), first["type"]


def test_a_minimal_job_has_its_defaults() -> None:
    job = Job.model_validate(MINIMAL)
    assert (job.retry.max_attempts, job.retry.transient, job.repair.attempts) == (5, 3, 1)
    assert (job.gaps.min_completion, job.gaps.contract) == (None, "all_or_nothing")
    assert job.provider.output_reserve_tokens == 0
    assert job.schedule is None


@pytest.mark.parametrize(
    "path",
    [
        "surprise", "source.surprise", "source.columns.surprise", "transform.surprise", "provider.surprise",
        "provider.limits.surprise", "shards.surprise", "validation.surprise", "retry.surprise", "gaps.surprise",
        "repair.surprise",
        "publish.surprise",
    ],
)  # fmt: skip
def test_an_unknown_key_is_refused_and_named(path: str) -> None:
    assert fault(path, 1) == (path, "extra_forbidden")


@pytest.mark.parametrize("name", ["model", "messages", "input", "response_format", "stream"])
def test_what_nightmill_sets_itself_is_no_parameter(name: str) -> None:
    assert fault("provider.parameters", {name: 1}) == ("provider.parameters", "value_error")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("shards.count", 0), ("shards.count", 257), ("retry.max_attempts", 0), ("retry.max_attempts", 11),
        ("retry.transient", -1), ("repair.attempts", 10), ("repair.max_output_tokens_cap", 0),
        ("gaps.min_completion", 1.1), ("source.statement_timeout_s", 0), ("provider.poll_interval_s", 0),
        ("publish.view", "two words"), ("publish.view", "v; drop table x"), ("publish.view", "v" * 49),
        ("source.kind", "oracle"), ("source.conn_id", "has space"),
    ],
)  # fmt: skip
def test_a_value_out_of_bounds_is_refused_and_named(path: str, value: Any) -> None:
    assert fault(path, value)[0] == path


def test_a_job_cannot_be_changed_after_reading() -> None:
    job = Job.model_validate(MINIMAL)
    with pytest.raises(ValidationError):
        job.description = "y"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("parameters", "reserve"),
    [
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 9, "max_tokens": 7}, 9),
        ({"max_completion_tokens": None}, 0),
        ({}, 0),
    ],
)
def test_the_output_reserve_is_what_the_request_says(parameters: dict[str, Any], reserve: int) -> None:
    job = Job.model_validate(with_value("provider.parameters", parameters))
    assert job.provider.output_reserve_tokens == reserve

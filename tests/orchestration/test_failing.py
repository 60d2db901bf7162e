"""How faults end a task."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from psycopg.errors import InvalidTextRepresentation, UndefinedFunction
from support.pipeline import Pipeline

from nightmill.domain.errors import Blocked, ConfigError, NightmillError, ProviderUnavailable, StaleWriter, Transient
from nightmill.domain.keys import KeyMaker
from nightmill.orchestration.failing import as_airflow_failure


@pytest.mark.parametrize("kind", [ConfigError, Blocked])
def test_what_a_person_must_mend_fails_at_once(kind: type[NightmillError]) -> None:
    with pytest.raises(AirflowFailException, match=r"It is broken. Remedy: mend it.") as caught, as_airflow_failure():
        raise kind("It is broken.", "mend it.")
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("kind", [Transient, ProviderUnavailable, StaleWriter])
def test_what_passes_by_itself_is_retried(kind: type[NightmillError]) -> None:
    with pytest.raises(AirflowException) as caught, as_airflow_failure():
        raise kind("It is away.", "wait.")
    assert not isinstance(caught.value, AirflowFailException)


def test_the_cause_that_could_quote_a_document_is_not_shown() -> None:
    with pytest.raises(AirflowException) as caught, as_airflow_failure():
        try:
            raise ValueError("the document says: secret")
        except ValueError as fault:
            raise Transient("It failed.", "wait.") from fault
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "secret" not in str(caught.value)


def test_an_unforeseen_exception_is_retried_and_shows_its_kind_and_place_but_not_its_text() -> None:
    with pytest.raises(AirflowException) as caught, as_airflow_failure():
        KeyMaker(None)  # type: ignore[arg-type]
    assert not isinstance(caught.value, AirflowFailException)
    assert str(caught.value).startswith("AttributeError at keys.py:")
    assert caught.value.__suppress_context__

    with (
        pytest.raises(AirflowException, match=r"^InvalidTextRepresentation [(]SQLSTATE 22P02[)]") as quoting,
        as_airflow_failure(),
    ):
        raise InvalidTextRepresentation("the document says: secret")
    assert "secret" not in str(quoting.value)


def test_a_ledger_that_lacks_a_migration_is_retried_with_the_remedy() -> None:
    with (
        pytest.raises(AirflowException, match=r"^UndefinedFunction .*run `python -m nightmill init-db`") as caught,
        as_airflow_failure(),
    ):
        raise UndefinedFunction("function nightmill.settle does not exist")
    assert not isinstance(caught.value, AirflowFailException)


@pytest.mark.parametrize(
    ("fault", "lines"),
    [
        (
            Blocked("Two checks failed.\nTo look: select 1", "loosen them."),
            ["Two checks failed.", "To look: select 1;"],
        ),
        (Transient("It is away.", "wait."), ["It is away."]),
        (ValueError("the document says: secret"), ["ValueError at "]),
    ],
)
def test_cause_and_remedy_stand_in_the_log_as_lines_of_their_own_before_the_traceback(
    fault: Exception, lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(AirflowException), as_airflow_failure():
        raise fault
    said = [one.getMessage() for one in caplog.records if one.name == "nightmill.orchestration.failing"]
    assert len(said) == len(lines) + 1
    assert all(found.startswith(line.rstrip(";")) for found, line in zip(said, lines, strict=False))
    assert said[-1].startswith("Remedy: ")
    assert "secret" not in caplog.text
    assert all("\n" not in one for one in said)  # a line of its own each


def test_airflows_own_exceptions_pass_through() -> None:
    with pytest.raises(AirflowSkipException), as_airflow_failure():
        raise AirflowSkipException("nothing to do")


@pytest.mark.parametrize(("try_number", "blocked_by"), [(5, None), (6, "freeze_snapshot")])
def test_a_freeze_waits_for_a_person_only_once_airflow_tries_it_no_more(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, try_number: int, blocked_by: str | None
) -> None:
    from nightmill.orchestration import connections, tasks

    pipeline.store = pipeline.folder / "job.yaml"  # no folder: a fault that can pass by itself
    run = SimpleNamespace(dag_id="nightmill_test", run_id="run-1", data_interval_start=None, data_interval_end=None)
    context = {"params": {}, "dag_run": run, "ti": SimpleNamespace(try_number=try_number, max_tries=5)}
    monkeypatch.setattr(tasks, "get_current_context", lambda: context)
    monkeypatch.setattr(connections, "environment", lambda: pipeline.env)
    with pytest.raises(AirflowException, match="object store"):
        tasks.freeze_snapshot(str(pipeline.folder))
    assert pipeline.sql("select state, blocked_by from nightmill.batch") == [("CREATED", blocked_by)]

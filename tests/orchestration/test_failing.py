"""How faults end a task."""

from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from nightmill.domain.errors import Blocked, ConfigError, NightmillError, ProviderUnavailable, StaleWriter, Transient
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


def test_other_exceptions_pass_through_and_are_retried() -> None:
    with pytest.raises(ZeroDivisionError), as_airflow_failure():
        _ = 1 / 0

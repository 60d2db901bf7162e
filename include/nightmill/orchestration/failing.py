"""How our faults end a task: what a person must mend fails at once, everything else is retried (a retry is free)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from nightmill.domain.errors import NightmillError, StaleWriter, Terminal
from nightmill.domain.foreign_faults import described

_MISSING = {"42883", "42P01", "42703"}  # function, table, column


@contextmanager
def as_airflow_failure() -> Iterator[None]:
    """Translate faults; the message is cause and remedy, without the chain of causes, which can quote documents."""
    try:
        yield
    except StaleWriter as fault:
        raise AirflowException(str(fault)) from None
    except Terminal as fault:
        raise AirflowFailException(str(fault)) from None
    except NightmillError as fault:
        raise AirflowException(str(fault)) from None
    except AirflowException:
        raise
    except Exception as fault:  # its text can quote a document or an answer
        raise AirflowException(f"{described(fault, passed_by=__file__)}{_remedy(fault)}") from None


def refuse_cleared(context: Any) -> None:
    """Raise AirflowFailException in a task that somebody cleared: the run names the person who triggered it, and what
    the task does would be done by somebody else in that name. A clear raises `max_tries` above the task's retries."""
    if context["ti"].max_tries > context["ti"].task.retries:
        raise AirflowFailException(
            f"{context['dag_run'].dag_id} was cleared, and Airflow does not record by whom. Remedy: Trigger a new run "
            "of it."
        )


def _remedy(fault: Exception) -> str:
    """What the database misses a migration brings, as long as nobody has changed the ledger by hand."""
    if getattr(fault, "sqlstate", None) not in _MISSING:
        return ""
    return (
        ". Remedy: The ledger does not fit this version of nightmill: run `python -m nightmill init-db`, then `doctor`."
    )

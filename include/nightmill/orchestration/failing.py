"""How our faults end a task: what a person must mend fails at once, everything else is retried (a retry is free)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from nightmill.domain.errors import NightmillError, StaleWriter, Terminal, Transient
from nightmill.domain.foreign_faults import described

log = logging.getLogger(__name__)

_MISSING = {"42883", "42P01", "42703"}  # function, table, column


@contextmanager
def as_airflow_failure() -> Iterator[None]:
    """Translate faults; the message is cause and remedy, without the chain of causes, which can quote documents. Both
    stand as lines of their own before the traceback that Airflow writes."""
    try:
        yield
    except NightmillError as fault:
        _say(fault)
        terminal = isinstance(fault, Terminal) and not isinstance(fault, StaleWriter)
        raise (AirflowFailException if terminal else AirflowException)(str(fault)) from None
    except AirflowException:
        raise
    except Exception as fault:  # its text can quote a document or an answer
        ours = Transient(described(fault, passed_by=__file__), _remedy(fault))
        _say(ours)
        raise AirflowException(str(ours)) from None


def _say(fault: NightmillError) -> None:
    """A long line is cut by the log tab's window, and the traceback pushes the message out of it."""
    for line in fault.cause.splitlines():
        log.error("%s", line)
    log.error("Remedy: %s", fault.remedy)


def refuse_cleared(context: Any) -> None:
    """Raise AirflowFailException in a task that somebody cleared: the run names the person who triggered it, and what
    the task does would be done by somebody else in that name. A clear raises `max_tries` above the task's retries."""
    if context["ti"].max_tries > context["ti"].task.retries:
        with as_airflow_failure():
            raise Terminal(
                f"{context['dag_run'].dag_id} was cleared, and Airflow does not record by whom.",
                "Trigger a new run of it.",
            )


def _remedy(fault: Exception) -> str:
    """What the database misses a migration brings, as long as nobody has changed the ledger by hand."""
    if getattr(fault, "sqlstate", None) in _MISSING:
        return "The ledger does not fit this version of nightmill: run `python -m nightmill init-db`, then `doctor`."
    return "Look at the place that is named; Airflow tries the task again. Report it with the version of nightmill."

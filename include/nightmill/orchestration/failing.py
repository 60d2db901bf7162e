"""How our faults end a task: what a person must mend fails at once, everything else is retried (a retry is free)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from nightmill.domain.errors import NightmillError, StaleWriter, Terminal


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

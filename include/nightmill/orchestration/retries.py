"""How often a task is tried again, and when: what people run next to it fails over for some minutes (a managed Postgres
for 2 to 8), and a retry costs nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

# 10 to 20 s at first, then twice as long each time up to 2 minutes: 10 minutes in all at least.
PATIENT: dict[str, Any] = {
    "retries": 8,
    "retry_delay": timedelta(seconds=10),
    "retry_exponential_backoff": 2,
    "max_retry_delay": timedelta(minutes=2),
}


def patience(retries: int, delay_s: float) -> dict[str, Any]:
    """The same with a job's own number of retries and first wait."""
    delay = timedelta(seconds=delay_s)
    longest = max(PATIENT["max_retry_delay"], delay)
    return {**PATIENT, "retries": retries, "retry_delay": delay, "max_retry_delay": longest}

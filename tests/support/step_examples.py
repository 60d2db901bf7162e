"""Facts, rules and capabilities that the tests of next_step share."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from nightmill.domain.capabilities import Capabilities, Input, Lookup
from nightmill.domain.snapshots import BatchStatus, Snapshot
from nightmill.domain.states import ProviderBatchState
from nightmill.domain.step_facts import Facts, Rules

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)

PROVES = Capabilities(
    create_is_idempotent=False,
    lookup=Lookup.METADATA,
    absence_grace=timedelta(seconds=180),
    input=Input.FILE,
    most_requests=50_000,
    most_bytes=200_000_000,
    window=timedelta(hours=24),
)
GUESSES = replace(PROVES, lookup=Lookup.FINGERPRINT, input=Input.INLINE, absence_grace=15 * MINUTE)
REPEATS = replace(PROVES, create_is_idempotent=True, lookup=Lookup.NAME, input=Input.STORE)

RULES = Rules(
    capabilities=PROVES,
    account="ours",
    conn_id="provider",
    poll_interval=timedelta(seconds=30),
    create_timeout=timedelta(seconds=60),
    quiet_period=None,
    results_grace=timedelta(minutes=15),
    unknown_status=timedelta(hours=6),
    abandoned_after=timedelta(days=7),
)

INTENT = Facts(7, 3, 5, ProviderBatchState.INTENT, "ours", "abcd", 100, START)
STAGED = replace(INTENT, input_ref="file-1")
CREATING = replace(STAGED, state=ProviderBatchState.CREATING, creating_at=START)
SENT = replace(
    CREATING, state=ProviderBatchState.SUBMITTED, submitted_at=START, provider_id="batch_1", raw_status="in_progress"
)
ENDED = replace(
    SENT,
    state=ProviderBatchState.ENDED,
    ended_at=START,
    over_at=START,
    raw_status="completed",
    total=100,
    finished=100,
    answered=100,
    results_named=True,
    answers_named=True,
)
COLLECTED = replace(ENDED, state=ProviderBatchState.COLLECTED)
ABANDONED = replace(CREATING, state=ProviderBatchState.ABANDONED)


def shown(status: BatchStatus, provider_id: str = "batch_1") -> Snapshot:
    """What the provider says of it."""
    return Snapshot(provider_id, status, str(status))

"""Every state of a provider batch that can last has a deadline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from nightmill.domain.deadlines import Remedy, overdue
from nightmill.domain.states import LIVE_PROVIDER_BATCH_STATES, ProviderBatchState

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
SENT = ProviderBatchState.SUBMITTED


@pytest.mark.parametrize("state", sorted(LIVE_PROVIDER_BATCH_STATES))
@pytest.mark.parametrize("raw_status", [None, "validating", "in_progress", "finalizing", "cancelling", "paused"])
def test_no_live_state_lasts_for_ever(state: ProviderBatchState, raw_status: str | None) -> None:
    assert overdue(state, raw_status, SINCE, SINCE + timedelta(hours=1)) is None
    assert overdue(state, raw_status, SINCE, SINCE + timedelta(hours=49)) is not None


def test_what_hangs_at_the_provider_is_stopped_and_what_hangs_here_needs_a_person() -> None:
    hours = timedelta(hours=31)
    assert overdue(SENT, "in_progress", SINCE, SINCE + timedelta(hours=29)) is None
    found = overdue(SENT, "in_progress", SINCE, SINCE + hours)
    assert found is not None
    assert (found.remedy, found.why) == (Remedy.STOP, "still in_progress 31 h after it was sent")
    ended = overdue(ProviderBatchState.ENDED, "completed", SINCE, SINCE + hours)
    assert ended is not None
    assert (ended.remedy, ended.why) == (Remedy.ASK, "ENDED for 31 h: no worker has collected its results")


def test_validation_that_never_ends_is_stopped_early() -> None:
    found = overdue(SENT, "validating", SINCE, SINCE + timedelta(hours=7))
    assert found is not None
    assert found.remedy is Remedy.STOP


def test_what_is_being_cancelled_already_is_not_cancelled_again() -> None:
    found = overdue(SENT, "cancelling", SINCE, SINCE + timedelta(hours=37))
    assert found is not None
    assert found.remedy is Remedy.ASK


@pytest.mark.parametrize("state", [ProviderBatchState.COLLECTED, ProviderBatchState.ABANDONED])
def test_what_is_over_is_never_overdue(state: ProviderBatchState) -> None:
    assert overdue(state, None, SINCE, SINCE + timedelta(days=900)) is None

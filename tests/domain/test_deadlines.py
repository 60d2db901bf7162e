"""Every state of a provider batch that can last has a deadline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from nightmill.domain.deadlines import InState, Remedy, overdue
from nightmill.domain.snapshots import BatchStatus, Stopped
from nightmill.domain.states import LIVE_PROVIDER_BATCH_STATES, ProviderBatchState

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
SENT = ProviderBatchState.SUBMITTED
DAY = SINCE + timedelta(hours=24)


@pytest.mark.parametrize("state", sorted(LIVE_PROVIDER_BATCH_STATES))
def test_no_live_state_lasts_for_ever(state: ProviderBatchState) -> None:
    for status, stopped, window in product([None, *BatchStatus], [None, *Stopped], [None, DAY]):
        one = InState(state, SINCE, "word", status, stopped, window)
        assert overdue(one, SINCE + timedelta(hours=1)) is None
        assert overdue(one, SINCE + timedelta(hours=49)) is not None


def test_what_hangs_at_the_provider_is_stopped_and_what_hangs_here_needs_a_person() -> None:
    running = InState(SENT, SINCE, "in_progress", BatchStatus.RUNNING, window_ends_at=DAY)
    assert overdue(running, SINCE + timedelta(hours=29)) is None
    found = overdue(running, SINCE + timedelta(hours=31))
    assert found is not None
    assert (found.remedy, found.why) == (Remedy.STOP, "still in_progress 31 h after it was sent")
    ended = overdue(InState(ProviderBatchState.ENDED, SINCE, "completed"), SINCE + timedelta(hours=31))
    assert ended is not None
    assert (ended.remedy, ended.why) == (Remedy.ASK, "ENDED for 31 h: no worker has collected its results")


def test_a_provider_with_a_longer_window_is_given_it() -> None:
    running = InState(SENT, SINCE, "in_progress", BatchStatus.RUNNING, window_ends_at=SINCE + timedelta(days=7))
    assert overdue(running, SINCE + timedelta(days=7)) is None
    assert overdue(running, SINCE + timedelta(days=8)) is not None


def test_validation_that_never_ends_is_stopped_early() -> None:
    waiting = InState(SENT, SINCE, "validating", BatchStatus.WAITING, window_ends_at=DAY)
    found = overdue(waiting, SINCE + timedelta(hours=7))
    assert found is not None
    assert found.remedy is Remedy.STOP


def test_what_is_being_cancelled_already_is_not_cancelled_again() -> None:
    stopping = InState(SENT, SINCE, "cancelling", BatchStatus.RUNNING, Stopped.CANCELLED, DAY)
    found = overdue(stopping, SINCE + timedelta(hours=37))
    assert found is not None
    assert found.remedy is Remedy.ASK


@pytest.mark.parametrize("state", [ProviderBatchState.COLLECTED, ProviderBatchState.ABANDONED])
def test_what_is_over_is_never_overdue(state: ProviderBatchState) -> None:
    assert overdue(InState(state, SINCE), SINCE + timedelta(days=900)) is None

"""Progress in words, and what is left at the pace so far."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from nightmill.domain.progress import (
    Attempts,
    Progress,
    ProviderBatchCount,
    ShardCount,
    one_line,
    refusals,
    repeats,
    seconds_left,
    waiting,
)
from nightmill.domain.wording import dollars, duration, pluralised

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = BEGAN + timedelta(minutes=10)
HALFWAY = Progress(
    shards=(ShardCount("RUNNING", 2, 600), ShardCount("SETTLED", 1, 400)),
    provider_batches=(
        ProviderBatchCount("ABANDONED", "failed", 1, 300, 300),
        ProviderBatchCount("COLLECTED", "completed", 4, 400, 400),
        ProviderBatchCount("SUBMITTED", "in_progress", 2, 600, 100),
    ),
    began=BEGAN,
)


def test_the_line_says_shards_items_what_runs_at_the_provider_and_the_time_left() -> None:
    assert one_line(HALFWAY, NOW) == (
        "1 of 3 shards settled; 500 of 1,000 items answered; 2 provider batches in_progress; about 10 min to go"
    )


def test_one_of_a_thing_is_not_written_in_the_plural() -> None:
    one = Progress((ShardCount("RUNNING", 1, 1),), (ProviderBatchCount("CREATING", None, 1, 1, 0),), BEGAN)
    assert one_line(one, NOW) == "0 of 1 shard settled; 0 of 1 item answered; 1 provider batch creating"
    assert [pluralised(n, "batch") for n in (0, 1, 2_000)] == ["0 batches", "1 batch", "2,000 batches"]


def test_nothing_to_send_and_nothing_left_are_said() -> None:
    assert one_line(Progress((), (), None), NOW) == "no shards: nothing has to be sent"
    done = Progress((ShardCount("SETTLED", 2, 8),), (ProviderBatchCount("COLLECTED", "completed", 2, 8, 8),), BEGAN)
    assert one_line(done, NOW) == "2 of 2 shards settled; 8 of 8 items answered"


def test_the_pace_counts_from_the_first_intent_and_is_unknown_before_the_first_answer() -> None:
    assert seconds_left(HALFWAY, 250, NOW) == 1800
    assert seconds_left(HALFWAY, 0, NOW) is None
    assert seconds_left(HALFWAY, 1000, NOW) == 0


def test_answers_that_wait_for_collection_count_and_retried_items_count_once() -> None:
    assert HALFWAY.answered_of(unsettled=600) == 500
    assert HALFWAY.answered_of(unsettled=550) == 550
    assert HALFWAY.answered_of(unsettled=0) == 1000


def test_an_item_that_is_asked_again_is_not_answered() -> None:
    rounds = (
        ProviderBatchCount("COLLECTED", "completed", 1, 15, 15),
        ProviderBatchCount("SUBMITTED", "validating", 1, 1, 0),
    )
    again = Progress((ShardCount("RUNNING", 1, 15),), rounds, BEGAN)
    assert "14 of 15 items answered; 1 provider batch validating; about" in one_line(again, NOW)
    between = Progress(again.shards, rounds[:1], BEGAN)
    assert "14 of 15 items answered; about" in one_line(between, NOW, unsettled=1)


def test_everything_is_not_answered_while_items_wait_to_be_sent_again() -> None:
    first_round = ProviderBatchCount("COLLECTED", "completed", 2, 2000, 2000, failed=55)
    between = Progress((ShardCount("RETRY_WAIT", 2, 2000, unsettled=55),), (first_round,), BEGAN)
    said = one_line(between, NOW)
    assert said.startswith("0 of 2 shards settled; 1,945 of 2,000 items answered; ")
    assert said.endswith("; 55 to be sent")
    assert "everything is answered" not in said
    # At the provider the failed ones of a file are counted as done there, and are not answered either.
    there = Progress(
        (ShardCount("RUNNING", 1, 2000, unsettled=2000),),
        (ProviderBatchCount("ENDED", "completed", 1, 2000, 2000, failed=55),),
        BEGAN,
    )
    assert "1,945 of 2,000 items answered" in one_line(there, NOW)


def test_rounds_refusals_and_waits_are_told_and_nothing_is_said_where_there_are_none() -> None:
    assert (repeats(HALFWAY), refusals(Progress((), (), None)), waiting(HALFWAY, NOW)) == ("", "", "")
    attempts = (Attempts(None, 1945, 0, 1), Attempts("output", 3, 0, 1), Attempts("transient", 57, 55, 2))
    given_up = (
        ProviderBatchCount("ABANDONED", "failed", 1, 300, 0, reason="token_limit_exceeded"),
        ProviderBatchCount("ABANDONED", None, 2, 600, 0, reason="create refused: queue_full"),
    )
    seen = Progress((ShardCount("RUNNING", 1, 2000, wake_at=NOW + timedelta(seconds=90)),), given_up, BEGAN, attempts)
    assert repeats(seen) == "55 requests sent again, round 2; failed: 3 as output, 57 as transient"
    assert refusals(seen) == "3 provider batches given up (create refused: queue_full)"
    assert waiting(seen, NOW) == "looks again by 00:11:30 UTC"


def test_a_hang_and_a_failed_task_do_not_look_like_a_wait() -> None:
    due = Progress((ShardCount("RUNNING", 1, 10, wake_at=NOW - timedelta(minutes=1)),), (), BEGAN)
    assert waiting(due, NOW) == ""  # its task starts just now
    assert waiting(due, NOW + timedelta(minutes=5)) == "was due at 00:09:00 UTC, and no task has looked since"
    failed = Progress((ShardCount("RUNNING", 2, 10, failed=1),), (), BEGAN)
    assert waiting(failed, NOW) == "the task of 1 shard failed"


def test_durations_and_money_are_written_for_people() -> None:
    assert [duration(s) for s in (1, 89, 600, 7200)] == ["1 second", "89 seconds", "10 min", "2.0 h"]
    assert [dollars(one) for one in (Decimal("1234.5"), "0.00012", None)] == ["$1,234.5000", "$0.0001", "price unknown"]

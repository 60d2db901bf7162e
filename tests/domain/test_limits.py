"""What a refusal means, however a provider words it, and what an account's refusals teach."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from nightmill.domain.limits import Dimensions, Limit, Standing, limit_of, refused, taken, too_large, too_large_in

NOW = datetime(2026, 1, 1, tzinfo=UTC)

MEANINGS: list[tuple[str, str, int | None, Limit | None]] = [
    ("token_limit_exceeded", "", 400, Limit.QUEUE),
    ("token_limit_exceeded", "", 429, Limit.QUEUE),
    ("TokenLimitExceeded", "", None, Limit.QUEUE),
    (
        "",
        "Enqueued token limit reached for gpt-4o in organization org-1. Limit: 90,000.",
        429,
        Limit.QUEUE,
    ),
    ("rate_limit_exceeded", "Too many concurrent batches.", 429, Limit.QUEUE),
    ("", "You have 3 active batch jobs, the maximum allowed.", 400, Limit.QUEUE),
    ("", "The batch queue is full, try again later.", 503, Limit.QUEUE),
    ("RESOURCE_EXHAUSTED", "", 429, Limit.QUEUE),
    ("", "", 413, Limit.SIZE),
    ("file_too_large", "", 400, Limit.SIZE),
    ("too_many_tasks", "", None, Limit.SIZE),
    ("", "The input file exceeds the maximum size of 200 MB.", 400, Limit.SIZE),
    ("", "Too many requests in one batch: at most 50,000.", None, Limit.SIZE),
    ("", "Too many requests", 429, Limit.RATE),
    ("rate_limit_exceeded", "Rate limit reached for requests per minute.", 429, Limit.RATE),
    ("invalid_request_error", "Unsupported parameter: 'temprature'.", 400, None),
    ("model_not_found", "The model does not exist.", 404, None),
    ("context_length_exceeded", "This request has more tokens than the model's context.", 400, None),
]


@pytest.mark.parametrize(("code", "message", "status", "meant"), MEANINGS)
def test_size_and_queue_limits_mean_the_same_however_they_arrive(
    code: str, message: str, status: int | None, meant: Limit | None
) -> None:
    assert limit_of(code, "", message, status) is meant


@pytest.mark.parametrize(
    ("code", "message", "status", "found"),
    [
        ("", "", 413, Dimensions(bytes=True, requests=False)),
        ("too_many_tasks", "", None, Dimensions(bytes=False, requests=True)),
        ("", "more than 200 MB", 400, Dimensions(bytes=True, requests=False)),
        ("batch_too_large", "", 400, Dimensions(bytes=True, requests=True)),
    ],
)
def test_what_a_file_was_too_large_in_is_told_from_what_the_refusal_says(
    code: str, message: str, status: int | None, found: Dimensions
) -> None:
    assert too_large_in(code, message, status) == found


def refusal(before: Standing, now: datetime, limit: Limit = Limit.QUEUE, **known: int) -> Standing:
    told = {"file_tokens": 1_000, "taken_tokens": 0, "newest": 1} | known
    return refused(before, limit, now=now, pause_s=60, **told)


def test_a_queue_that_stays_full_is_probed_after_pauses_that_double_up_to_a_quarter_of_an_hour() -> None:
    standing, now, pauses = Standing(), NOW, []
    while now < NOW + timedelta(hours=1):
        standing = refusal(standing, now)
        assert standing.next_at is not None
        pauses.append((standing.next_at - now).total_seconds())
        now = standing.next_at
    assert pauses == [60, 120, 240, 480, 900, 900, 900]
    assert standing.is_stuck(NOW + timedelta(hours=1))
    assert not standing.is_stuck(NOW + timedelta(minutes=29))


def test_refusals_never_grind_files_to_dust() -> None:
    standing = Standing()
    for probe in range(100):
        standing = refusal(standing, NOW, file_tokens=max(1_000 >> probe, 1), newest=probe)
    assert standing.tokens == 1_000 >> 6


def test_a_probe_that_is_taken_ends_the_refusals_and_room_grows_again_up_to_what_was_refused() -> None:
    standing = refusal(Standing(), NOW, file_tokens=1_000, taken_tokens=300)
    assert standing.tokens == 300
    after = taken(standing, 2, 300, NOW)
    assert (after.refusals, after.next_at, after.refused_since) == (0, None, None)
    assert after.tokens == 600
    assert taken(after, 3, 600, NOW).tokens == 1_200 or taken(after, 3, 600, NOW).tokens == 600
    assert after.room(600, NOW) == 0
    assert after.room(0, NOW) == 600
    assert after.room(0, NOW + timedelta(hours=25)) is None


def test_files_that_left_before_the_first_refusal_was_seen_teach_nothing_more() -> None:
    standing = refusal(Standing(), NOW, newest=7)
    assert not standing.is_news(5)
    assert standing.is_news(8)


def test_a_file_that_was_too_large_halves_only_what_it_was_too_large_in_and_is_forgotten_after_a_week() -> None:
    learnt = too_large(Standing(), Dimensions(bytes=True, requests=False), file_bytes=1_000, requests=10, now=NOW)
    assert learnt.file_limits(NOW) == (500, None)
    again = too_large(learnt, Dimensions(bytes=False, requests=True), file_bytes=400, requests=9, now=NOW)
    assert again.file_limits(NOW) == (500, 4)
    assert again.file_limits(NOW + timedelta(days=8)) == (None, None)
    after = refused(again, Limit.SIZE, file_tokens=10, taken_tokens=0, now=NOW, pause_s=60, newest=1)
    assert after.next_at == NOW  # smaller files need no pause

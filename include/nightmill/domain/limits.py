"""Limits of an account and of a file, known by their meaning however they arrive: as a refused call or as a batch that
failed in its validation, by a code, a status or in prose alone. And what is learnt from a refusal.

Numbers and words of limits differ from provider to provider, and most can be read nowhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum


class Limit(StrEnum):
    """Which limit a refusal names."""

    QUEUE = "queue"  # the account has as much under way as it may: wait
    SIZE = "size"  # this file is larger than a file may be: send smaller ones
    RATE = "rate"  # calls come faster than they may: wait


_NO_LETTERS = re.compile(r"[^a-z]")
# Without anything but letters, so that one entry stands for every way to write it.
_QUEUE_CODES = """
    tokenlimitexceeded tokenlimitreached enqueuedtokenlimitexceeded enqueuedtokenlimitreached enqueuedtokenlimit
    queuefull batchqueuefull queuelimitexceeded queuelimitreached batchlimitexceeded batchlimitreached toomanybatches
    toomanyjobs toomanybatchjobs toomanyenqueuedrequests toomanyenqueuedtokens toomanyconcurrentbatches
    maxconcurrentbatches concurrentbatchlimit concurrencylimitexceeded servicequotaexceeded
    servicequotaexceededexception resourceexhausted
"""
_SIZE_CODES = """
    filetoolarge filetoobig inputfiletoolarge filesizeexceeded filesizelimitexceeded maxfilesizeexceeded
    maximumfilesizeexceeded requesttoolarge requestentitytoolarge entitytoolarge payloadtoolarge contenttoolarge
    bodytoolarge batchtoolarge batchsizeexceeded toomanytasks toomanylines toomanyrows toomanyrecords
    toomanyrequestsinfile toomanyrequestsinbatch maxrequestsexceeded
"""
_QUEUE, _SIZE = frozenset(_QUEUE_CODES.split()), frozenset(_SIZE_CODES.split())
_THINGS = r"(requests|tasks|lines|rows|records|items|entries|prompts)"
_WORK = r"(batch(es)?|((batch|inference)\s+)?jobs?)"
_UNDER_WAY = (
    r"(concurrent|simultaneous|parallel|active|pending|running|open|queued|enqueued|in[- _]?progress|in[- ]flight|"
    r"outstanding|unfinished)"
)
_QUEUE_WORDS = re.compile(
    rf"""
    enqueued[ _-]+((prompt|input)[ _-]+)?(token|request)   # "Enqueued token limit reached for ..."
    | \b(tokens?|requests?|{_WORK})\s.{{0,40}}\b(in|on)\s+(the|your|its|our)\s+(\w+\s+){{0,2}}queue
    | \bqueue\b.{{0,30}}\b(full|at\s+capacity|limit|exceeded)\b
    | \bqueued\b.{{0,40}}\b(limit|exceed\w*|maximum|quota|too\s+many)\b
    | \btoo\s+many\s+(({_UNDER_WAY}|batch|inference)\s+){{0,2}}(batches|jobs)\b
    | \b(limit|maximum|max|quota|number|too\s+many|exceed\w*)\b.{{0,40}}\b{_UNDER_WAY}\s.{{0,30}}
        \b({_WORK}|tokens?|requests?)\b
    | \b{_UNDER_WAY}\s+{_WORK}\b.{{0,60}}\b(limit|exceed\w*|maximum|quota|reached)\b
    | \bonce\s+(some|one|other)\b.{{0,40}}\b{_WORK}\b.{{0,40}}\b(complete|finish|end)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_FILE = r"(file|upload|payload|body|batch|request\s+entity|request\s+body|input\s+file)"
_SIZE_WORDS = re.compile(
    rf"""
    \b{_FILE}\b.{{0,60}}\b(too\s+(large|big)|larger\s+than|bigger\s+than)\b
    | \b{_FILE}\b.{{0,60}}\bexceed\w*\b.{{0,40}}\b(size|bytes|\d*\s?[kmg]i?b|megabytes|gigabytes)\b
    | \btoo\s+(large|big)\b.{{0,40}}\b{_FILE}\b
    | \b{_FILE}\s+size\b.{{0,60}}\b(limit|exceed\w*|maximum|at\s+most|larger|too)\b
    | \b(limit|exceed\w*|maximum|max)\b.{{0,40}}\b{_FILE}\s+size\b
    | \btoo\s+many\s+{_THINGS}\s+(in|per|for)\s+((a|the|this|one|each|your|single)\s+)?(\w+\s+)?(batch|file|job|input)\b
    | \b(more|fewer|less)\s+than\s+[\d,._ ]+\s*{_THINGS}\b
    | \b(limit|exceed\w*|maximum|max|most|up\s+to)\b.{{0,30}}\b[\d,._]+\s*{_THINGS}\b.{{0,30}}\b(batch|file|job|input)\b
    | \b(number|count)\s+of\s+{_THINGS}\b.{{0,60}}\b(exceed\w*|maximum|limit|too|larger|more)\b
    | \b(limit|exceed\w*|maximum|max)\b.{{0,40}}\b(number|count)\s+of\s+{_THINGS}\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_COUNTS = re.compile(rf"\b{_THINGS}\b", re.IGNORECASE)
_BYTES = re.compile(
    r"\b(bytes?|\d*[kmg]i?b|megabytes?|gigabytes?|payload|entity|body)\b|file.{0,3}(size|too)", re.IGNORECASE
)


def limit_of(code: str, kind: str, message: str, status: int | None = None) -> Limit | None:
    """The limit that a refusal of a call or of a whole file names, None for another reason. `kind` is the provider's
    broader word, `status` the HTTP status of a refused call. What is about money is asked for before this."""
    words = {_NO_LETTERS.sub("", one.lower()) for one in (code, kind)}
    if words & _QUEUE:
        return Limit.QUEUE
    if words & _SIZE or status == 413:
        return Limit.SIZE
    if _QUEUE_WORDS.search(message):
        return Limit.QUEUE
    if status != 429 and _SIZE_WORDS.search(message):
        return Limit.SIZE
    return Limit.RATE if status == 429 else None


@dataclass(frozen=True, slots=True)
class Dimensions:
    """In which ways a file was too large."""

    bytes: bool
    requests: bool


def too_large_in(code: str, message: str, status: int | None = None) -> Dimensions:
    """What a refusal for size complains of; both where it does not say. 413 is about bytes."""
    said = f"{code.replace('_', ' ')} {message} {'entity' if status == 413 else ''}"
    in_bytes, in_requests = bool(_BYTES.search(said)), bool(_COUNTS.search(said))
    return Dimensions(in_bytes or not in_requests, in_requests or not in_bytes)


LONGEST_PAUSE_S = 900.0  # between two probes; an alert comes within the hour
FORGET_QUEUE = timedelta(hours=24)  # what is under way now has ended by then
FORGET_SIZE = timedelta(days=7)
ROOM_DOUBLES = timedelta(hours=1)  # how fast what did not fit is doubted again
MOST_HALVINGS = 6  # a queue that others keep full must not grind files to dust
ALERT_AFTER = timedelta(minutes=30)  # of refusals alone


@dataclass(frozen=True, slots=True)
class Standing:
    """What an account was seen to take of a model. Tokens are prompt tokens.

    While `refusals` > 0 one probe goes out at a time, no sooner than `next_at`. `tokens` fit into its queue, as far as
    is known; `tokens_refused` did not at `refused_at`. A file of twice `file_bytes` or `file_requests` was too large.
    """

    refusals: int = 0
    refused_as: Limit | None = None
    refused_since: datetime | None = None
    refused_at: datetime | None = None
    next_at: datetime | None = None
    probe: int | None = None
    known_until: int = 0
    tokens: int | None = None
    tokens_refused: int | None = None
    file_bytes: int | None = None
    file_requests: int | None = None
    size_refused_at: datetime | None = None

    def room(self, enqueued: int, now: datetime) -> int | None:
        """Prompt tokens that the next file may have beside what is under way; None where nothing is known.

        0: wait, because what is left is too little for a file that is worth its calls.
        """
        if self.tokens is None or self.refused_at is None or now > self.refused_at + FORGET_QUEUE:
            return None
        left = self.tokens - enqueued
        if enqueued <= 0:
            return max(self.tokens, 1)
        return left if left >= max(self.tokens // 4, 1) else 0

    def file_limits(self, now: datetime) -> tuple[int | None, int | None]:
        """The most bytes and the most requests of a file, as far as refusals taught it."""
        if self.size_refused_at is None or now > self.size_refused_at + FORGET_SIZE:
            return None, None
        return self.file_bytes, self.file_requests

    def is_news(self, provider_batch_id: int) -> bool:
        """Whether what the provider says of a file tells more than what it said of those before."""
        return provider_batch_id > self.known_until or provider_batch_id == self.probe

    def is_stuck(self, now: datetime) -> bool:
        """Whether nothing was taken for so long that a person should hear of it."""
        return self.refused_since is not None and now >= self.refused_since + ALERT_AFTER


def refused(
    before: Standing, limit: Limit, *, file_tokens: int, taken_tokens: int, now: datetime, pause_s: float, newest: int
) -> Standing:
    """After a refusal of a file of so many tokens, with `taken_tokens` of ours in the queue. `pause_s` is the first
    pause; it doubles with each refusal. `newest` is the last provider batch of the account, sent or about to be."""
    refusals = before.refusals + 1
    pause = 0.0 if limit is Limit.SIZE else min(pause_s * 2.0 ** min(refusals - 1, 20), max(LONGEST_PAUSE_S, pause_s))
    after = replace(
        before,
        refusals=refusals,
        refused_as=limit,
        refused_since=before.refused_since or now,
        refused_at=now,
        next_at=now + timedelta(seconds=pause),
        probe=None,
        known_until=max(newest, before.known_until),
    )
    if limit is not Limit.QUEUE:
        return after if before.tokens is None else replace(after, refused_at=before.refused_at)
    whole = before.tokens_refused if before.refusals and before.tokens_refused else taken_tokens + file_tokens
    smallest = max(1, whole >> MOST_HALVINGS)
    return replace(after, tokens=taken_tokens or max(file_tokens // 2, smallest), tokens_refused=whole)


def taken(before: Standing, provider_batch_id: int, taken_tokens: int, now: datetime) -> Standing:
    """After the provider took a file; `taken_tokens` are ours in its queue, this file included. A probe that was taken
    ends the refusals, and what is tried doubles with each file, up to what was refused."""
    after = before
    if before.refusals and before.is_news(provider_batch_id):
        after = replace(
            after, refusals=0, refused_as=None, refused_since=None, next_at=None, probe=None,
            known_until=max(before.known_until, provider_batch_id),
        )  # fmt: skip
    if after.tokens is None:
        return after
    fits = max(after.tokens, taken_tokens)
    if after.tokens_refused is not None and after.refused_at is not None and not after.refusals:
        doubtful = after.tokens_refused * 2.0 ** min((now - after.refused_at) / ROOM_DOUBLES // 1, 60)
        fits = fits * 2 if fits * 2 < doubtful else fits
    return replace(after, tokens=fits)


def too_large(before: Standing, found: Dimensions, *, file_bytes: int, requests: int, now: datetime) -> Standing:
    """After a file was refused as too large: the next ones have half of what it was too large in, at most."""
    return replace(
        before,
        file_bytes=_half(before.file_bytes, file_bytes) if found.bytes else before.file_bytes,
        file_requests=_half(before.file_requests, requests) if found.requests else before.file_requests,
        size_refused_at=now,
    )


def _half(known: int | None, refused_now: int) -> int:
    half = max(1, refused_now // 2)
    return half if known is None else min(known, half)

"""Finds the batch of a create call whose answer was lost.

Nothing of ours stands on a message batch. It is known by when it was made and by how many requests it has; once it has
ended, the ids in its first result lines prove it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from nightmill.domain.snapshots import Absent, BatchStatus, Found, LookupResult, Snapshot, Unclear
from nightmill.providers.anthropic.shapes import PAGE_SIZE, batch_snapshot
from nightmill.providers.json_answers import MalformedAnswerError
from nightmill.providers.listing import ListingWalk, NoListingError
from nightmill.providers.port import SentCreate

LATEST = timedelta(hours=6)  # after it went out, a create call is executed no more
EARLIEST = timedelta(hours=2)  # before it went out: so far the provider's clock may be behind
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Lookup:
    """`page` fetches a page of the listing behind an id and tells how much the provider's clock is behind ours (None
    where it does not say); `is_of` reads whether a batch's results carry a token (None: they do not tell)."""

    page: Callable[[str | None], tuple[Mapping[str, Any], timedelta | None]]
    is_of: Callable[[str, str], bool | None]

    def run(self, sent: SentCreate) -> LookupResult:
        """Absent means that no batch of that time and size is left which may be it."""
        behind: timedelta | None = None

        def horizon() -> datetime | None:
            return None if behind is None else sent.since - behind

        walk, candidates = ListingWalk(sent.since, PAGE_SIZE, horizon=horizon), list[Snapshot]()
        try:
            while not walk.done:
                page, behind = self.page(walk.after)
                snapshots = [batch_snapshot(entry) for entry in walk.take(page)]
                earliest = sent.since - max(behind or timedelta(), EARLIEST)
                candidates += [one for one in snapshots if _may_be(one, sent, earliest)]
        except NoListingError as error:
            return Unclear(str(error), can_change=False)
        except MalformedAnswerError as error:
            return Unclear(f"its listing of batches is not the API's ({error})")
        return self._judged(sent.token, candidates, walk)

    def _judged(self, token: str, candidates: Sequence[Snapshot], walk: ListingWalk) -> LookupResult:
        ours, unclear = list[Snapshot](), list[Snapshot]()
        for one in candidates:
            has_results = one.status is BatchStatus.ENDED and bool(one.result_refs)
            proof = self.is_of(one.provider_id, token) if has_results else None
            if proof:
                ours.append(one)
            elif proof is None:
                unclear.append(one)
        if ours:
            return Found(ours[0], ours[1:])
        if unclear:
            return Unclear(_told(unclear), unclear, can_change=any(map(_can_change, unclear)))
        return Absent() if walk.complete else Unclear(walk.why)


def _may_be(one: Snapshot, sent: SentCreate, earliest: datetime) -> bool:
    """A batch that does not say when it was made, or of how many requests, may be any."""
    if one.provider_id in sent.known:
        return False
    if one.created_at is not None and not earliest <= one.created_at <= sent.since + LATEST:
        return False
    return one.requests_total in (None, sent.requests)


def _can_change(one: Snapshot) -> bool:
    return one.status is not BatchStatus.ENDED or one.results_pending


def _told(candidates: Sequence[Snapshot]) -> str:
    named = "; ".join(
        f"{one.provider_id} (made at {one.created_at:%Y-%m-%d %H:%M:%S} UTC, "
        f"{one.requests_total} requests, {one.raw_status})"
        if one.created_at
        else one.provider_id
        for one in candidates[:_MOST_NAMED]
    )
    more = f" and {len(candidates) - _MOST_NAMED} more" if len(candidates) > _MOST_NAMED else ""
    return f"of that time and size it has {named}{more}, and only the results of a batch tell whose it is"

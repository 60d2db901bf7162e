"""How to walk a listing of batches without believing more of it than it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from nightmill.providers.cleaning import as_sent, identifier, word
from nightmill.providers.json_answers import MalformedAnswerError, read_time

# Providers keep whole seconds, and not all of their machines the same time.
CLOCK_SLACK = timedelta(minutes=5)
JITTER = timedelta(seconds=5)  # between neighbours of a listing that is in order
# How a server says that it has no such listing at all, rather than that it cannot answer now.
NO_LISTING = frozenset({404, 405, 410, 501})


class NoListingError(Exception):
    """The provider has no listing of batches. Stays inside the adapter; its text is ours."""


def time_in(headers: Mapping[str, str]) -> datetime | None:
    """What the server's clock showed when it answered, by its Date header."""
    try:
        moment = parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@dataclass(slots=True)
class ListingWalk:
    """Feed it page after page until `done`; then `complete` says whether everything back to `since` was seen, and if
    not, `why`.

    The walk ends early at old entries only while the listing is seen to run from new to old, and only where `horizon`
    says when that moment was by the provider's own clock (None = nobody knows: read to the end). It is asked once,
    when it matters. A page that repeats ids, an empty page that promises more, an entry without an id and the page cap
    end the walk incomplete: providers are known whose paging does not advance.
    """

    since: datetime
    page_size: int  # entries that were asked for
    page_cap: int = 50
    horizon: Callable[[], datetime | None] | None = None  # None: `since` is near enough
    done: bool = False
    complete: bool = False
    why: str = ""
    after: str | None = None
    _pages: int = 0
    _unreadable: bool = False
    _rises: bool = False
    _falls: bool = False
    _first: datetime | None = None
    _oldest: datetime | None = None
    _limit: datetime | None = None
    _asked: bool = False
    _ids: set[str] = field(default_factory=set)

    def take(
        self, page: Mapping[str, Any], found: Callable[[Mapping[str, Any]], bool] | None = None
    ) -> list[Mapping[str, Any]]:
        """The page's entries that were not seen before. Once one is `found`, no absence needs to be proved any more."""
        data = page.get("data")
        if not isinstance(data, list):
            raise MalformedAnswerError("no list of batches")
        self._pages += 1
        fresh = [entry for entry in data if self._is_fresh(entry)]
        if found is not None and any(map(found, fresh)):
            self.horizon = None
        has_more = page.get("has_more")
        more = has_more if isinstance(has_more, bool) else len(data) >= self.page_size
        if len(fresh) < len(data):
            self._end(f"page {self._pages} of its listing of batches repeats entries, or has one without an id")
        elif more and not data:
            self._end(f"page {self._pages} of its listing of batches is empty and promises more")
        elif not more or self._is_past_since():
            self._end("its listing of batches has an entry without a readable time" if self._unreadable else "")
        elif self._pages >= self.page_cap:
            self._end(f"its listing of batches goes on after {self._pages} pages, and {self._order()}")
        else:
            self.after = as_sent(identifier(data[-1]["id"]) or "")
        return fresh

    def _is_fresh(self, entry: object) -> bool:
        name = identifier(entry.get("id")) if isinstance(entry, Mapping) else None
        if not isinstance(entry, Mapping) or name is None or name in self._ids:
            return False
        self._ids.add(name)
        created_at = read_time(entry.get("created_at"))
        if created_at is None:
            self._unreadable = self._unreadable or word(entry.get("status")) is None
            return True
        self._first = self._first or created_at
        self._rises = self._rises or created_at > (self._oldest or created_at) + JITTER
        self._oldest = min(created_at, self._oldest or created_at)
        self._falls = self._first > self._oldest + JITTER
        return True

    def _is_past_since(self) -> bool:
        """Equal times tell nothing of the order, and one entry out of order tells that there is none."""
        if self._rises or not self._falls or self._oldest is None:
            return False
        if self._oldest >= self.since - CLOCK_SLACK:
            return False
        if not self._asked:
            self._asked = True
            self._limit = self.since if self.horizon is None else self.horizon()
        return self._limit is not None and self._oldest < min(self._limit, self.since) - CLOCK_SLACK

    def _order(self) -> str:
        if self._rises:
            return "does not run from new to old"
        if not self._falls:
            return "shows no order"
        if self._asked and self._limit is None:
            return "nothing says what time it is there"
        return "has not come to the time of the create yet"

    def _end(self, why: str) -> None:
        self.done, self.complete, self.why = True, not why, why

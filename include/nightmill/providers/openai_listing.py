"""How to walk a newest-first listing of batches without believing more of it than it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from nightmill.providers.cleaning import as_sent, identifier, word
from nightmill.providers.openai_shapes import MalformedAnswerError, read_time

PAGE_SIZE = 100
# Providers keep whole seconds and their own clock; a batch made "before" our intent can still be ours.
CLOCK_SLACK = timedelta(minutes=5)


@dataclass(slots=True)
class ListingWalk:
    """Feed it page after page until `done`; then `complete` says whether everything back to `since` was seen.

    A page that repeats ids, an empty page that promises more, an entry without an id and the page cap end the walk
    incomplete: providers are known whose paging does not advance. The walk ends early at old entries only while the
    listing really runs from new to old.
    """

    since: datetime
    page_cap: int = 50
    done: bool = False
    complete: bool = False
    after: str | None = None
    _pages: int = 0
    _unreadable: bool = False
    _descending: bool = True
    _oldest: datetime | None = None
    _ids: set[str] = field(default_factory=set)

    def take(self, page: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The page's entries that were not seen before."""
        data = page.get("data")
        if not isinstance(data, list):
            raise MalformedAnswerError("no list of batches")
        self._pages += 1
        fresh = [entry for entry in data if self._is_fresh(entry)]
        has_more = page.get("has_more")
        more = has_more if isinstance(has_more, bool) else len(data) >= PAGE_SIZE
        stuck = len(fresh) < len(data) or (more and not data)
        if stuck:
            self._end(complete=False)
        elif not more or self._is_past_since():
            self._end(complete=not self._unreadable)
        elif self._pages >= self.page_cap:
            self._end(complete=False)
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
        elif self._oldest is None or created_at <= self._oldest:
            self._oldest = created_at
        elif created_at > self._oldest + CLOCK_SLACK:
            self._descending = False
        return True

    def _is_past_since(self) -> bool:
        return self._descending and self._oldest is not None and self._oldest < self.since - CLOCK_SLACK

    def _end(self, *, complete: bool) -> None:
        self.done, self.complete = True, complete

"""What two results differ in, as numbers: counted by tenant, domain and length of the document, summed up for each
slice. Pure: what is counted comes from storage/comparison.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple

from nightmill.domain.field_measures import Measure, differ, score
from nightmill.domain.wording import truncated

By = Literal["all", "tenant", "domain", "length"]
BANDS = (250, 1_000, 4_000, 16_000, 64_000)  # prompt tokens of the rendered request: where the next band begins

_MOST_OF_NAME = 100  # characters


class Slice(NamedTuple):
    """A part of the items, such as those of one tenant."""

    by: By
    name: str

    def __str__(self) -> str:
        return "all items" if self.by == "all" else f"{self.by} {self.short_name or '(empty)'}"

    @property
    def short_name(self) -> str:
        """As it is shown: a tenant is what the source's column says."""
        return truncated(self.name, _MOST_OF_NAME)


ALL = Slice("all", "")


class Cell(NamedTuple):
    """What items are counted by. `band` is None where nobody knows how long they were."""

    tenant: str
    domain: str
    band: int | None

    def slices(self, wanted: Set[str]) -> Iterator[Slice]:
        """The slices that an item of this cell belongs to."""
        yield ALL
        if "tenant" in wanted:
            yield Slice("tenant", self.tenant)
        if "domain" in wanted:
            yield Slice("domain", self.domain)
        if "length" in wanted and self.band is not None:
            yield Slice("length", band_name(self.band))


def band_name(band: int) -> str:
    """`250 to 999 tokens`."""
    if band == 0:
        return f"under {BANDS[0]:,} tokens"
    if band == len(BANDS):
        return f"{BANDS[-1]:,} tokens and more"
    return f"{BANDS[band - 1]:,} to {BANDS[band] - 1:,} tokens"


@dataclass(slots=True)
class Side:
    """What became of the items of one batch. Tokens and `cost` (US dollars) are of all its attempts, failed ones too;
    `fresh` are items that it asked for and accepted, `accepted` counts reused ones as well."""

    items: int = 0
    accepted: int = 0
    fresh: int = 0
    rejected: int = 0
    in_review: int = 0
    excluded: int = 0
    asked: int = 0
    attempts: int = 0
    prompt: int = 0
    completion: int = 0
    cost: float = 0
    cost_squares: float = 0

    def add(self, other: Side) -> None:
        for one in fields(Side):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    @property
    def wanted(self) -> int:
        """Items that should have got an answer."""
        return self.items - self.excluded


@dataclass(slots=True)
class Part:
    """One slice. `scores` and `before` say how often each score came for a field's known answers, new and as shown;
    `drops` the differences between the two, item by item."""

    new: Side = field(default_factory=Side)
    old: Side = field(default_factory=Side)
    added: int = 0
    gone: int = 0
    kept: int = 0
    changed: int = 0
    cited: int = 0
    cited_before: int = 0
    field_changed: Counter[str] = field(default_factory=Counter)
    scores: dict[str, Counter[float]] = field(default_factory=dict)
    before: dict[str, Counter[float]] = field(default_factory=dict)
    drops: dict[str, Counter[float]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows of the new result."""
        return self.added + self.kept

    @property
    def rows_before(self) -> int:
        """Rows of the old one."""
        return self.gone + self.kept


@dataclass(frozen=True, slots=True)
class FieldRule:
    """How one field is compared."""

    name: str
    measure: Measure
    tolerance: float = 0

    @property
    def needs_values(self) -> bool:
        """Whether the database cannot tell by itself if two values are the same."""
        return self.measure is not Measure.EXACT


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` rows that are alike: of one cell, in both results or in one. `differs` says per field whether its values
    are not identical; `old` and `new` hold those of such fields that need a closer look, by position."""

    cell: Cell
    is_new: bool
    is_old: bool
    cited: bool
    cited_before: bool
    differs: Sequence[bool] | None
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None
    count: int


class Tally:
    """Sums facts up for each slice."""

    def __init__(self, rules: Sequence[FieldRule], slices: Set[str]) -> None:
        self.rules = rules
        self._wanted = slices
        self._parts: dict[Slice, Part] = {ALL: Part()}

    @property
    def parts(self) -> dict[Slice, Part]:
        """All items, and each slice of a kind that has several: a lone one is all items again."""
        many = Counter(where.by for where in self._parts)
        return {where: part for where, part in self._parts.items() if where.by == "all" or many[where.by] > 1}

    def add_rows(self, rows: Rows) -> None:
        """Count rows that came, went or stayed."""
        changed = [] if rows.differs is None else list(self._changed(rows))
        for part in self._of(rows.cell):
            part.added += rows.count * (rows.is_new and not rows.is_old)
            part.gone += rows.count * (rows.is_old and not rows.is_new)
            part.kept += rows.count * (rows.is_new and rows.is_old)
            part.cited += rows.count * rows.cited
            part.cited_before += rows.count * rows.cited_before
            part.changed += rows.count * bool(changed)
            for name in changed:
                part.field_changed[name] += rows.count

    def add_items(self, cell: Cell, side: Side, *, new: bool) -> None:
        """Count what became of a batch's items."""
        for part in self._of(cell):
            (part.new if new else part.old).add(side)

    def add_known(
        self, cell: Cell, known: Mapping[str, Any], new: Mapping[str, Any], old: Mapping[str, Any] | None
    ) -> None:
        """Score an item whose right answers are known; those that are null are not."""
        for rule in self.rules:
            right = known.get(rule.name)
            if right is None:
                continue
            now = score(rule.measure, new.get(rule.name), right, rule.tolerance)
            then = None if old is None else score(rule.measure, old.get(rule.name), right, rule.tolerance)
            for part in self._of(cell):
                part.scores.setdefault(rule.name, Counter())[now] += 1
                if then is not None:
                    part.before.setdefault(rule.name, Counter())[then] += 1
                    part.drops.setdefault(rule.name, Counter())[then - now] += 1

    def _changed(self, rows: Rows) -> Iterator[str]:
        assert rows.differs is not None
        for rule, differs in zip(self.rules, rows.differs, strict=True):
            if differs and (not rule.needs_values or self._differ(rule, rows)):
                yield rule.name

    @staticmethod
    def _differ(rule: FieldRule, rows: Rows) -> bool:
        assert rows.old is not None
        assert rows.new is not None
        return differ(rule.measure, rows.old[rule.name], rows.new[rule.name], rule.tolerance)

    def _of(self, cell: Cell) -> Iterator[Part]:
        for one in cell.slices(self._wanted):
            yield self._parts.setdefault(one, Part())

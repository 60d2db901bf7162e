"""Which gaps of a batch its job allows, and what is recorded and said of them. Pure.

A gap is an item without an accepted answer. They come counted by what the rules ask for, so a million of them are a few
rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

from nightmill.domain.wording import pluralised
from nightmill.jobs.settings.gap_settings import GapRule, Gaps, Show

Facts = dict[str, Any]
_MOST_LINES = 10  # of them that are told
MOST_TOLD = 100  # kinds of gaps that are recorded one by one


@dataclass(frozen=True, slots=True)
class Gap:
    """Items that are missing for one reason. `kind` is the class of failure; with `code` None where nothing failed."""

    bucket: str
    kind: str | None
    code: str | None
    tenant: str
    required: bool
    items: int

    @property
    def name(self) -> str:
        """`dead_lettered/output/schema`."""
        return "/".join(filter(None, (self.bucket, self.kind, self.code)))


@dataclass(frozen=True, slots=True)
class Ruled:
    """A gap and the rule that allows it; None where none does."""

    gap: Gap
    rule: GapRule | None

    @property
    def show(self) -> Show:
        """What readers get in its place."""
        return self.rule.show if self.rule else "absent"

    @property
    def fill(self) -> str:
        """How it is to be filled."""
        return self.rule.fill if self.rule else "rerun"


@dataclass(frozen=True, slots=True)
class Decision:
    """What a job says about the gaps of a batch. `why` has a sentence for each reason against it, without full stop."""

    settings: Gaps
    completion: float
    ruled: tuple[Ruled, ...]
    why: tuple[str, ...]

    @property
    def allowed(self) -> bool:
        """Whether the batch may be shown as it is."""
        return not self.why


def completion(counts: Mapping[str, int]) -> float:
    """(accepted + reused) / (planned - excluded); 1 when nothing was to be done."""
    planned = sum(counts.values()) - counts.get("excluded", 0)
    return _accepted(counts) / planned if planned else 1.0


def decide(settings: Gaps, counts: Mapping[str, int], gaps: Sequence[Gap]) -> Decision:
    """Hold the gaps of a batch against its job's contract."""
    rate = completion(counts)
    ruled = tuple(Ruled(gap, _rule(settings, gap)) for gap in gaps)
    return Decision(settings, rate, ruled, tuple(_reasons(settings, rate, ruled)))


def _rule(settings: Gaps, gap: Gap) -> GapRule | None:
    if settings.min_completion is None or gap.required:
        return None
    return next((rule for rule in settings.rules or (GapRule(),) if _fits(rule, gap)), None)


def _fits(rule: GapRule, gap: Gap) -> bool:
    asked = ((rule.classes, gap.kind), (rule.codes, gap.code), (rule.tenants, gap.tenant))
    return all(not wanted or have in wanted for wanted, have in asked)


def _reasons(settings: Gaps, rate: float, ruled: Sequence[Ruled]) -> list[str]:
    if settings.min_completion is None:
        missing = sum(one.gap.items for one in ruled)
        return [f"{pluralised(missing, 'gap')}, and job.yaml allows none (gaps.min_completion)"] if missing else []
    why = []
    if rate < settings.min_completion:
        why.append(f"completion {rate:.4f} is below gaps.min_completion {settings.min_completion:.4f}")
    if required := sum(one.gap.items for one in ruled if one.gap.required):
        why.append(f"{pluralised(required, 'gap')} where source.columns.required is true")
    others = sum(one.gap.items for one in ruled if one.rule is None and not one.gap.required)
    if others:
        why.append(f"no rule of gaps.rules fits {pluralised(others, 'gap')}")
    return why


def due(fill: str, now: datetime) -> datetime | None:
    """Until when a person has to fill a gap that is found now: the next time that the clock in UTC shows it. None where
    no person has to."""
    if not fill.startswith("person by "):
        return None
    moment = datetime.combine(now.astimezone(UTC), time.fromisoformat(fill.removeprefix("person by ")), UTC)
    return moment if moment > now else moment + timedelta(days=1)


def facts(
    decision: Decision, job: str, batch_id: int, counts: Mapping[str, int], shown: Mapping[str, int], now: datetime
) -> Facts:
    """What is recorded with the batch, as JSON: how much is accepted, which gaps there are, how each is to be filled,
    and what readers may see. `shown` counts the rows that stand in for gaps."""
    gaps = sum(one.gap.items for one in decision.ruled)
    fill: Counter[str] = Counter()
    for one in decision.ruled:
        fill[one.fill] += one.gap.items
    return {
        "contract": decision.settings.contract,
        "min_completion": decision.settings.min_completion,
        "allowed": decision.allowed,
        "why": list(decision.why),
        "accepted": {
            "items": _accepted(counts),
            "planned": sum(counts.values()),
            "excluded": counts.get("excluded", 0),
            "completion": decision.completion,
        },
        "gaps": [_as_json(one) for one in decision.ruled[:MOST_TOLD]],
        "further_gaps": sum(one.gap.items for one in decision.ruled[MOST_TOLD:]),
        "listed_by": f"python -m nightmill dead-letters --batch {batch_id}",
        "replayed_by": f"python -m nightmill replay --job {job} --batch {batch_id}",
        "fill": [
            {"fill": how, "items": items, "until": moment.isoformat() if (moment := due(how, now)) else None}
            for how, items in fill.most_common()
        ],
        "readers": {
            "published": decision.allowed,
            "null_rows": shown.get("null_row", 0),
            "previous": shown.get("previous", 0),
            "absent": gaps - sum(shown.values()),
            "searchable": all(one.rule.searchable for one in decision.ruled if one.rule),
        },
    }


def told(facts: Facts) -> list[str]:
    """The facts for people, a line each; none where nothing is missing."""
    if not facts.get("gaps"):
        return []
    good, readers = facts["accepted"], facts["readers"]
    planned = good["planned"] - good["excluded"]
    lines = [f"accepted: {good['items']:,} of {planned:,} ({good['completion']:.2%})"]
    for one in facts["gaps"][:_MOST_LINES]:
        tenant = f" of tenant {one['tenant']}" if one["tenant"] else ""
        required = ", required" if one["required"] else ""
        shown = f", shown as {one['show']}" if facts["allowed"] else ""
        lines.append(f"gap: {one['items']:,} {one['gap']}{tenant}{required}{shown}, fill: {one['fill']}")
    if further := facts["further_gaps"] + sum(one["items"] for one in facts["gaps"][_MOST_LINES:]):
        lines.append(f"gap: {further:,} of other kinds")
    lines.append(f"to list them: {facts['listed_by']}")
    lines += [_filled(one, facts["replayed_by"]) for one in facts["fill"]]
    return [*lines, _seen(facts, readers)]


def _filled(one: Facts, replayed_by: str) -> str:
    if one["until"]:
        until = datetime.fromisoformat(one["until"])
        return f"to fill {one['items']:,}: a person, until {until:%Y-%m-%d %H:%M} UTC"
    if one["fill"] == "never":
        return f"to fill {one['items']:,}: nothing, they stay open"
    return f"to fill {one['items']:,}: the next run asks again for transient ones, `{replayed_by}` for the others"


def _seen(facts: Facts, readers: Facts) -> str:
    if not readers["published"]:
        return f"readers: the view stays where it was ({'; '.join(facts['why'])})"
    shown = f"{pluralised(readers['null_rows'], 'null row')}, {pluralised(readers['previous'], 'previous row')}"
    searchable = "" if readers["searchable"] else "; not to be searched"
    return f"readers: {shown}, {pluralised(readers['absent'], 'item')} absent{searchable}"


def _accepted(counts: Mapping[str, int]) -> int:
    return counts.get("accepted", 0) + counts.get("reused", 0)


def _as_json(one: Ruled) -> Facts:
    gap = one.gap
    return {
        "gap": gap.name,
        "bucket": gap.bucket,
        "class": gap.kind,
        "code": gap.code,
        "tenant": gap.tenant,
        "required": gap.required,
        "items": gap.items,
        "allowed": one.rule is not None,
        "show": one.show,
        "fill": one.fill,
    }

"""A comparison as it is recorded: numbers and names, never a text of a document or an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nightmill.domain.comparison import FieldRule, Part, Side, Slice
from nightmill.domain.intervals import Interval, mean
from nightmill.gates.compare_verdict import Finding, accuracy

MOST_SLICES = 200  # of one kind: those that break a limit first, then the largest


def details(
    rules: Sequence[FieldRule], parts: Mapping[Slice, Part], findings: Sequence[Finding], confidence: float
) -> dict[str, Any]:
    """JSON of what was compared and what was found."""
    kept = _kept(parts, findings)
    return {
        "findings": [_finding(one) for one in findings],
        "fields": {rule.name: str(rule.measure) for rule in rules},
        "slices": [
            {"by": where.by, "name": where.short_name, **_part(rules, parts[where], confidence)} for where in kept
        ],
        "slices_left_out": len(parts) - len(kept),
    }


def _kept(parts: Mapping[Slice, Part], findings: Sequence[Finding]) -> list[Slice]:
    bad = {one.where for one in findings}
    kept: list[Slice] = []
    for by in ("all", "tenant", "domain", "length"):
        of_kind = [where for where in parts if where.by == by]
        of_kind.sort(key=lambda one: (one not in bad, -_size(parts[one]), one.name))
        kept += of_kind[:MOST_SLICES]
    return kept


def _size(part: Part) -> int:
    return part.rows + part.gone


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "by": one.where.by, "name": one.where.short_name, "limit": one.limit, "field": one.field,
        "allowed": one.allowed, **_interval(one.seen), "text": str(one),
    }  # fmt: skip


def _interval(one: Interval) -> dict[str, Any]:
    return {"value": _short(one.value), "low": _short(one.low), "high": _short(one.high), "items": one.items}


def _short(number: float) -> float | None:
    return None if number in (float("inf"), float("-inf")) else round(number, 6)


def _part(rules: Sequence[FieldRule], part: Part, confidence: float) -> dict[str, Any]:
    return {
        "rows": {"added": part.added, "gone": part.gone, "kept": part.kept, "changed": part.changed},
        "cited": [part.cited, part.rows],
        "cited_before": [part.cited_before, part.rows_before],
        "fields": {rule.name: _field(rule, part, confidence) for rule in rules},
        "new": _side(part.new),
        "old": _side(part.old),
    }


def _field(rule: FieldRule, part: Part, confidence: float) -> dict[str, Any]:
    shown: dict[str, Any] = {"changed": part.field_changed[rule.name]}
    for name, interval in (
        ("accuracy", accuracy(rule, part.scores.get(rule.name), confidence)),
        ("accuracy_before", accuracy(rule, part.before.get(rule.name), confidence)),
        ("drop", mean(part.drops.get(rule.name, {}), confidence)),
    ):
        if interval is not None:
            shown[name] = _interval(interval)
    return shown


def _side(side: Side) -> dict[str, Any]:
    return {
        "items": side.items, "accepted": side.accepted, "fresh": side.fresh, "rejected": side.rejected,
        "in_review": side.in_review, "excluded": side.excluded, "asked": side.asked, "attempts": side.attempts,
        "prompt_tokens": side.prompt, "completion_tokens": side.completion,
        "cost": round(side.cost, 8),
    }  # fmt: skip

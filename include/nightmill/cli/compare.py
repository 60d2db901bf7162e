"""compare: two batches of one job as a table that fits a terminal, or as JSON."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator

from nightmill.domain.comparison import ALL, Part, Side
from nightmill.domain.intervals import Interval
from nightmill.domain.wording import aligned, duration, pluralised, truncated
from nightmill.gates.compare_verdict import accuracy
from nightmill.gates.comparing import Comparison
from nightmill.operations import compare
from nightmill.services.connections import environment_of

MOST_SLICES = 30  # lines; JSON has more
_NAME = 34  # characters of a slice's or a field's name


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison."""
    made = compare.run(environment_of(os.environ), arguments.a, arguments.b)
    print(json.dumps(made.details) if arguments.json else "\n".join(text(made)))
    return 0


def text(made: Comparison) -> Iterator[str]:
    """Tables of the whole, of the fields and of the slices."""
    old, new = made.old, made.new
    assert old is not None
    whole = made.parts[ALL]
    yield f"batch {old.batch_id} (A) beside batch {new.batch_id} (B)"
    yield from aligned([("", "A", "B"), *_whole(made)])
    yield (
        f"rows: {whole.kept - whole.changed:,} the same, {whole.changed:,} changed, {whole.gone:,} only in A, "
        f"{whole.added:,} only in B"
    )
    yield from aligned([("field", "agrees", "known", "right in A", "right in B"), *_fields(made)])
    slices = [where for where in made.parts if where != ALL]
    if slices:
        header = ("slice", "in both", "agree", "accepted A", "accepted B", "$/item A", "$/item B")
        shown = sorted(slices, key=lambda one: (one.by, -made.parts[one].kept, one.name))[:MOST_SLICES]
        yield from aligned([header, *((truncated(str(one), _NAME), *_slice(made.parts[one])) for one in shown)])
    if len(slices) > MOST_SLICES:
        yield f"{len(slices) - MOST_SLICES:,} more slices: see --json"
    if made.findings:
        yield f"{pluralised(len(made.findings), 'limit')} of compare in job.yaml that B breaks:"
        yield from (f"  {one}" for one in made.findings[:MOST_SLICES])


def _whole(made: Comparison) -> Iterator[tuple[str, str, str]]:
    part, old, new = made.parts[ALL], made.old, made.new
    assert old is not None
    yield "model", truncated(old.model, 30), truncated(new.model, 30)
    yield "prompt version", old.prompt_version[:12], new.prompt_version[:12]
    numbers: list[tuple[str, Callable[[Side], str]]] = [
        ("items", lambda side: f"{side.items:,}"),
        ("accepted", lambda side: _share(side.accepted, side.wanted)),
        ("of them asked for (not reused)", lambda side: f"{side.fresh:,}"),
        ("gave up", lambda side: _share(side.rejected, side.wanted)),
        ("in review", lambda side: _share(side.in_review, side.wanted)),
        ("requests per item asked for", lambda side: _ratio(side.attempts, side.asked)),
        ("prompt tokens", lambda side: f"{side.prompt:,}"),
        ("completion tokens", lambda side: f"{side.completion:,}"),
        ("tokens per accepted item asked for", lambda side: _ratio(side.prompt + side.completion, side.fresh)),
    ]
    for name, told in numbers:
        yield name, told(part.old), told(part.new)
    yield "rows with a citation", _share(part.cited_before, part.rows_before), _share(part.cited, part.rows)
    yield "cost", _dollars(part.old, old.priced), _dollars(part.new, new.priced)
    yield "cost per accepted item asked for", _each(part.old), _each(part.new)
    yield "time", _time(old.seconds), _time(new.seconds)


def _fields(made: Comparison) -> Iterator[tuple[str, str, str, str, str]]:
    part = made.parts[ALL]
    for rule in made.rules:
        before = accuracy(rule, part.before.get(rule.name), made.confidence)
        now = accuracy(rule, part.scores.get(rule.name), made.confidence)
        agrees = _percent(part.kept - part.field_changed[rule.name], part.kept)
        yield truncated(rule.name, _NAME), agrees, f"{now.items:,}" if now else "–", _between(before), _between(now)


def _slice(part: Part) -> tuple[str, ...]:
    return (
        f"{part.kept:,}",
        _percent(part.kept - part.changed, part.kept),
        _percent(part.old.accepted, part.old.wanted),
        _percent(part.new.accepted, part.new.wanted),
        _each(part.old).removeprefix("$"),
        _each(part.new).removeprefix("$"),
    )


def _between(one: Interval | None) -> str:
    return "–" if one is None else f"{one.value:.1%} ({one.low:.1%} to {one.high:.1%})"


def _share(count: int, of: int) -> str:
    return f"{count:,} ({count / of:.1%})" if of else f"{count:,}"


def _percent(count: int, of: int) -> str:
    return f"{count / of:.1%}" if of else "–"


def _ratio(count: int, of: int) -> str:
    return f"{count / of:,.2f}" if of else "–"


def _dollars(side: Side, priced: bool) -> str:
    return f"${side.cost:,.4f}" if priced else "price unknown"


def _each(side: Side) -> str:
    return f"${side.cost / side.fresh:.6f}" if side.cost and side.fresh else "–"


def _time(seconds: float | None) -> str:
    return "–" if seconds is None else duration(seconds)

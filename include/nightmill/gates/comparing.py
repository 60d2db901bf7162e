"""Comparing a batch with another result: reads both sides in one snapshot, counts, and judges by the limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nightmill.domain.comparison import ALL, FieldRule, Part, Slice, Tally
from nightmill.domain.field_measures import Measure, usual
from nightmill.domain.pricing import Price, price_on
from nightmill.domain.receipt import cost
from nightmill.gates.compare_details import details
from nightmill.gates.compare_verdict import Finding, judge
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.output.columns import Column
from nightmill.jobs.settings.gate_settings import Compare, Gold
from nightmill.jobs.settings.job import Source
from nightmill.services.environment import Environment
from nightmill.storage import batches, comparison, contracts, gold, prices, usage
from nightmill.storage.batches import Batch
from nightmill.storage.comparison import Sides
from nightmill.storage.session import Connection, IsolationLevel


@dataclass(frozen=True, slots=True)
class Standing:
    """One batch as a whole. `seconds` are from its freeze to its last settled item."""

    batch_id: int
    model: str
    prompt_version: str
    seconds: float | None
    priced: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was counted, slice by slice, and which limits it breaks. `old` is None where nothing is shown."""

    rules: tuple[FieldRule, ...]
    parts: dict[Slice, Part]
    new: Standing
    old: Standing | None
    findings: list[Finding]
    confidence: float

    @property
    def details(self) -> dict[str, Any]:
        """Numbers and names, to be recorded."""
        return {
            "new": _told(self.new),
            "old": _told(self.old) if self.old is not None else None,
            **details(self.rules, self.parts, self.findings, self.confidence),
        }


def _told(one: Standing) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__slots__}


def snapshot(conn: Connection) -> None:
    """Let everything that this connection reads from now on be of one moment."""
    conn.rollback()
    conn.isolation_level = IsolationLevel.REPEATABLE_READ


def compare(env: Environment, conn: Connection, settings: Compare, answers: Gold | None, sides: Sides) -> Comparison:
    """Count and judge. `conn` is in a snapshot; `answers` are known right ones."""
    batch = batches.get(conn, sides.batch_id)
    other = batches.get(conn, sides.baseline) if sides.baseline is not None else None
    pinned = contracts.load(conn, batch.contract_id)
    before = contracts.load(conn, other.contract_id) if other is not None else pinned
    rules = _rules(settings, pinned, before)
    tally = Tally(rules, frozenset(settings.slices))
    for one in comparison.rows(conn, sides, rules):
        tally.add_rows(one)
    if answers is not None:
        _add_known(env, conn, pinned.job.source, answers, sides, tally)
    new = _add_batch(conn, batch, pinned, tally, new=True)
    old = _add_batch(conn, other, before, tally, new=False) if other is not None else None
    parts = tally.parts
    findings = judge(settings, rules, parts)
    return Comparison(rules, parts, new, old, findings, settings.confidence)


def _rules(settings: Compare, pinned: JobDefinition, before: JobDefinition) -> tuple[FieldRule, ...]:
    """Fields that both results have, without those that are ignored."""
    there = {column.name for column in before.columns}
    rules = (_rule(settings, one) for one in pinned.columns if one.name in there)
    return tuple(rule for rule in rules if rule.measure is not Measure.IGNORED)


def _rule(settings: Compare, column: Column) -> FieldRule:
    said = settings.fields.get(column.name)
    if said is None:
        return FieldRule(column.name, usual(column.sql_type))
    measure = usual(column.sql_type) if said.measure is None else Measure(said.measure)
    return FieldRule(column.name, measure, said.tolerance)


def _add_known(env: Environment, conn: Connection, source: Source, answers: Gold, sides: Sides, tally: Tally) -> None:
    dsn = env.source(source.conn_id)
    gold.load(conn, dsn, source.conn_id, answers, statement_timeout_s=source.statement_timeout_s)
    for cell, right, new, old in comparison.known(conn, sides, _in_both(answers.fields, tally.rules)):
        tally.add_known(cell, right, new, old)


def _in_both(fields: Sequence[str], rules: Sequence[FieldRule]) -> list[str]:
    names = {rule.name for rule in rules}
    return [name for name in fields if name in names]


def _add_batch(conn: Connection, batch: Batch, pinned: JobDefinition, tally: Tally, *, new: bool) -> Standing:
    model = pinned.job.provider.model
    price = price_on(prices.of_model(conn, model), model, batch.created_at.date())
    for cell, side in comparison.items(conn, batch.batch_id, price):
        tally.add_items(cell, side, new=new)
    _add_unattributed(conn, batch, price, tally, new=new)
    return Standing(
        batch_id=batch.batch_id,
        model=model,
        prompt_version=pinned.versions.prompt_version,
        seconds=comparison.seconds(conn, batch.batch_id),
        priced=price is not None,
    )


def _add_unattributed(conn: Connection, batch: Batch, price: Price | None, tally: Tally, *, new: bool) -> None:
    """The whole batch costs what its receipt says: answers that were lost are no item's, and are paid too."""
    spent = usage.spent(conn, batch.batch_id)
    side = tally.parts[ALL].new if new else tally.parts[ALL].old
    if side.items == 0:
        return
    side.prompt, side.completion = spent.prompt, spent.completion
    if price is not None and spent.can_be:
        side.cost = float(cost(price, spent))

"""report: what the run did, what it cost, and proof that the view shows what the run says it published."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from nightmill.domain.errors import Terminal
from nightmill.domain.estimate import Estimate, compared, described
from nightmill.domain.parts import Part
from nightmill.domain.pricing import Price, batch_cost, price_on
from nightmill.domain.receipt import Receipt, Tokens, cost, in_words, odd_in_words, receipt
from nightmill.domain.states import BatchState
from nightmill.domain.wording import aligned, pluralised
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.rules.dead_letters import breaches
from nightmill.jobs.rules.gaps import Facts, told
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.services.environment import Environment
from nightmill.storage import batches, contracts, dead_letters, gaps, gates, gold, prices, publications, strays, usage
from nightmill.storage.batches import Batch
from nightmill.storage.gates import Verdict
from nightmill.storage.gold import FieldAccuracy
from nightmill.storage.publications import Published
from nightmill.storage.session import Connection
from nightmill.storage.strays import Booked

log = logging.getLogger(__name__)

_ALERT = "alert: "


@dataclass(frozen=True, slots=True)
class Report:
    """The completion report of one batch. `receipt` is None where the model has no price; `alerts` say which of the
    job's limits its dead letters break."""

    batch: Batch
    model: str
    counts: dict[str, int]
    gaps: list[tuple[str, int]]
    spent: Tokens
    reused: Tokens
    failed: list[tuple[str, Tokens]]
    price: Price | None
    receipt: Receipt | None
    accuracy: list[FieldAccuracy]
    shown: Published | None
    alerts: list[str]
    late: Booked
    gates: list[Verdict] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    gap_facts: Facts | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the view shows rows of the batch."""
        return any(one.batch_id == self.batch.batch_id for one in self.parts)


def run(env: Environment, batch_id: int) -> Report:
    """Log the report. Raises Terminal when the batch should be visible and is not, or has ended without data."""
    report = build(env, batch_id)
    for line in render(report).splitlines():
        log.log(logging.WARNING if line.startswith(_ALERT) else logging.INFO, "%s", line)
    _refuse_unpublished(report)
    return report


def build(env: Environment, batch_id: int) -> Report:
    """Read everything that the report says."""
    with env.ledger() as conn:
        batch = batches.get(conn, batch_id)
        pinned = contracts.load(conn, batch.contract_id)
        model = pinned.job.provider.model
        spent, reused = usage.spent(conn, batch_id), usage.reused(conn, batch_id)
        price = price_on(prices.of_model(conn, model), model, batch.created_at.date())
        shown = publications.current(conn, batch.view_name)
        return Report(
            batch=batch,
            model=model,
            counts=batches.bucket_counts(conn, batch_id) if batch.frozen_at else {},
            gaps=batches.gaps_by_code(conn, batch_id),
            spent=spent,
            reused=reused,
            failed=usage.failed(conn, batch_id),
            price=price,
            receipt=receipt(price, spent, reused) if price else None,
            accuracy=_accuracy(env, conn, pinned, batch),
            shown=shown,
            alerts=breaches(pinned.job.dead_letters, *dead_letters.standing(conn, batch_id), env.now()),
            late=strays.of_batch(conn, batch_id),
            gates=gates.newest(conn, batch.holder),
            parts=publications.parts(conn, shown.publish_seq) if shown else [],
            gap_facts=gaps.facts(conn, batch_id),
        )


def _accuracy(env: Environment, conn: Connection, pinned: JobDefinition, batch: Batch) -> list[FieldAccuracy]:
    known = pinned.job.gold
    if known is None or batch.state is BatchState.ESTIMATED:
        return []
    source = pinned.job.source
    dsn = env.source(source.conn_id)
    gold.load(conn, dsn, source.conn_id, known, statement_timeout_s=source.statement_timeout_s)
    return [gold.accuracy(conn, batch.view_name, batch.batch_id, field) for field in known.fields]


def _refuse_unpublished(report: Report) -> None:
    batch = report.batch
    batches.refuse_without_data(batch)
    if batch.state in (BatchState.ESTIMATED, BatchState.STAGED):
        return
    if batch.state is not BatchState.PUBLISHED:
        raise Terminal(
            f"Batch {batch.batch_id} is {batch.state}: nothing was published.",
            "Clear publish; marking a task as success publishes nothing.",
        )
    if report.shown is None:
        raise Terminal(f"results.{batch.view_name} shows nothing.", "Clear publish and look at its log.")
    if not report.is_shown:
        log.warning("results.%s shows batch %s by now", batch.view_name, report.shown.batch_id)


def render(report: Report) -> str:
    """The report as text for people."""
    batch = report.batch
    lines = [f"{batch.job}: batch {batch.batch_id} is {batch.state} ({batch.state_reason})"]
    lines += aligned([("items planned", batch.item_count or 0), *sorted(report.counts.items())])
    if report.gaps:
        lines += ["gaps (bucket/class/code)", *aligned(report.gaps)]
    lines += told(report.gap_facts or {})
    lines += _estimated(batch) if batch.state is BatchState.ESTIMATED else [*_money(report), *_compared(report)]
    for one in report.accuracy:
        share = one.right / one.known if one.known else 0
        lines.append(f"field accuracy of {one.field}: {share:.1%} ({one.right} of {one.known} with a known answer)")
    if report.gates:
        lines.append("gates: " + ", ".join(f"{one.gate} {one.word}" for one in report.gates))
    lines += [f"{_ALERT}{alert}" for alert in report.alerts]
    return "\n".join(lines + _what_readers_see(report))


def _what_readers_see(report: Report) -> list[str]:
    batch, shown, lines = report.batch, report.shown, []
    if batch.state is BatchState.STAGED:
        lines += [
            f"this batch is a preview: {publications.readers_see(batch.view_name, shown)}",
            f"look at it: select * from nightmill.rows_{batch.view_name} where part_id = {batch.batch_id} "
            "(as nightmill_owner)",
            f"to show it: python -m nightmill publish --batch {batch.batch_id}, or trigger nightmill_publish; or "
            "trigger a run with the same values and publish = yes; its answers are reused without a call",
        ]
    if shown is not None:
        lines.append(
            f"results.{batch.view_name} shows {_what(report, shown)} since "
            f"{shown.published_at:%Y-%m-%d %H:%M:%S} UTC, {pluralised(shown.gaps, 'gap')}"
        )
        if report.is_shown and batch.options.limit:
            lines.append(
                f"this run was limited: the view shows {pluralised(batch.item_count or 0, 'source row')} at most"
            )
    return lines


def _what(report: Report, shown: Published) -> str:
    if shown.mode is not PublishMode.BY_INTERVAL:
        return f"batch {shown.batch_id}"
    of_interval = (report.batch.data_interval_start, report.batch.data_interval_end)
    mine = next((one.batch_id for one in report.parts if one.interval == of_interval), None)
    words = pluralised(len(report.parts), "interval")
    return f"{words}, batch {mine} for the one of this run," if mine else words


def _estimated(batch: Batch) -> list[str]:
    """What the dry run worked out; nothing was sent."""
    return described(Estimate.of_json(batch.estimate)) if batch.estimate else []


def _compared(report: Report) -> list[str]:
    if not report.batch.estimate or not report.spent.requests:
        return []
    paid = report.receipt.paid if report.receipt else None
    return compared(Estimate.of_json(report.batch.estimate), report.spent, paid)


def _money(report: Report) -> list[str]:
    spent = report.spent
    lines = [
        f"provider calls: {spent.requests}",
        f"tokens: {in_words(spent)}"
        + (f" ({pluralised(spent.estimated, 'request')} without reported usage, estimated)" if spent.estimated else ""),
        *odd_in_words(spent),
    ]
    lines += _failures(report) + _late(report)
    if report.receipt is None:
        return [*lines, f"receipt: no price is known for {report.model}; add one to nightmill.price"]
    paid = report.receipt
    return [
        *lines,
        "receipt (US dollars)",
        *aligned(
            [
                ("list price", f"{paid.list_price:,.4f}"),
                ("saved by batch discount", f"{paid.saved_by_batch:,.4f}"),
                ("paid", f"{paid.paid:,.4f}"),
                ("saved by reuse", f"{paid.saved_by_reuse:,.4f}"),
            ]
        ),
    ]


def _failures(report: Report) -> list[str]:
    """What was paid for nothing, by class. `unattributed` is what the provider counts beyond all lines it returned."""
    if not report.failed:
        return []
    table: list[Sequence[object]] = []
    for kind, used in report.failed:
        paid = f"{cost(report.price, used):,.4f}" if report.price is not None and used.can_be else "unknown"
        table.append((kind, used.requests, used.prompt, used.completion, paid))
    return ["failed attempts (class, attempts, tokens in and out, US dollars)", *aligned(table)]


def _late(report: Report) -> list[str]:
    """What was given up, ended all the same, and is paid beside everything else."""
    late = report.late
    if not late.batches:
        return []
    tokens = f"{late.prompt:,} tokens in, {late.completion:,} out"
    if report.price is not None:
        paid = batch_cost(report.price, late.prompt, late.cached, late.completion)
        tokens += f", {paid:,.4f} US dollars beside the receipt"
    found = pluralised(late.batches, "provider batch")
    return [f"found later: {found} that had been given up, {pluralised(late.answers, 'answer')}, {tokens}"]

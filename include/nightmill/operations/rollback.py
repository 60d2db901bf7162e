"""rollback, release and history of a view: a person's commands, and the DAG nightmill_rollback.

A rollback is one transaction: a new publication that shows earlier parts, and a hold on what it took back. An interval
that was merged with others is taken out of their part before, which is written anew beside the view. Revoking
answers follows in a second one; killed in between, it is made up for by a retry, or by `release`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

from nightmill.domain.errors import ConfigError
from nightmill.domain.interval_choice import Interval, choose
from nightmill.domain.wording import batches_named, pluralised
from nightmill.services.environment import Environment
from nightmill.storage import holds, publications, rollbacks, view_history
from nightmill.storage.holds import Hold
from nightmill.storage.part_builds import TRIES, OutOfDate
from nightmill.storage.publications import Published
from nightmill.storage.rollbacks import Plan
from nightmill.storage.session import Connection
from nightmill.storage.view_history import Event

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asks for: the publication before, publication `to`, or only one interval's earlier rows.
    `interval` is its start as the person wrote it; times without a zone are read in `zone`."""

    view: str
    to: int | None = None
    interval: str | None = None
    revoke: bool = False
    reason: str | None = None
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True)
class Done:
    """A rollback that was made, now or by an earlier try. `revoked` counts answers; None where it was not asked for.
    `intervals` are those whose rows changed."""

    shown: Published
    hold: Hold
    revoked: int | None
    intervals: list[Interval]


def look(env: Environment, wish: Wish) -> Plan:
    """What the rollback would do. Raises ConfigError and Terminal with the way out where it cannot be done."""
    if wish.to is not None and wish.interval is not None:
        raise ConfigError("Both a publication and an interval are named.", "Name one of them.")
    with env.ledger() as conn:
        conn.read_only = True
        interval = None
        if wish.interval is not None:
            interval = choose(wish.interval, _shown_intervals(conn, wish.view), wish.zone)
        return rollbacks.plan(conn, wish.view, wish.to, interval)


def described(plan: Plan, wish: Wish) -> list[str]:
    """What a rollback does, in words."""
    view, target = plan.shown.view_name, plan.target
    of = f" of the interval {plan.interval[0].isoformat()}" if plan.interval else ""
    what = f"what publication {target} showed{of}" if target is not None else f"no rows{of}"
    since = f"{plan.shown.published_at:%Y-%m-%d %H:%M} UTC"
    lines = [
        f"results.{view} shows publication {plan.shown.publish_seq}, since {since}",
        f"after the rollback it shows {what}",
        f"taken back: {batches_named(plan.taken_back)}",
        f"shown again: {batches_named([one.batch_id for one in plan.brought_back])}",
    ]
    held = "runs of that interval are" if plan.interval else "the view is"
    lines.append(f"{held} held until somebody releases it")
    if plan.halved:
        lines.append("the interval was merged with others: that period is written anew without it first")
    if wish.revoke:
        lines.append("the answers that only the taken back batches show are asked for again by later runs")
    return lines


def run(env: Environment, wish: Wish, plan: Plan, by: str, request: str | None = None) -> Done:
    """Roll back as planned. Raises Terminal where the view has changed since."""
    with env.ledger() as conn:
        shown, hold = _carry_out(conn, wish, plan, by, request)
        log.info("results.%s shows publication %s (rollback)", shown.view_name, shown.publish_seq)
        return _revoke(conn, shown, hold)


def _carry_out(conn: Connection, wish: Wish, plan: Plan, by: str, request: str | None) -> tuple[Published, Hold]:
    options: dict[str, Any] = {"reason": wish.reason, "revoke": wish.revoke, "request": request}
    for tries_left in range(TRIES, 0, -1):
        built = rollbacks.build(conn, plan)
        try:
            done = rollbacks.carry_out(conn, plan, by, built=built, **options)
            break
        except OutOfDate:
            conn.rollback()
            if tries_left == 1:
                raise
            log.info("something was published meanwhile: what is left of the merged part is built anew")
            plan = rollbacks.again(conn, plan)
    conn.commit()
    return done


def done_before(env: Environment, request: str) -> Done | None:
    """What this run did in an earlier try; what that try left undone is done now."""
    with env.ledger() as conn:
        hold = holds.of_request(conn, request)
        if hold is None:
            return None
        shown = publications.current(conn, hold.view_name)
        assert shown is not None
        return _revoke(conn, shown, hold)


def _revoke(conn: Connection, shown: Published, hold: Hold) -> Done:
    revoked = rollbacks.revoke_answers(conn, hold) if hold.revoke else None
    conn.commit()
    return Done(shown, hold, revoked, rollbacks.intervals_changed(conn, hold))


def release(env: Environment, view: str, interval: str | None, by: str, zone: tzinfo = UTC) -> list[Hold]:
    """Lift the hold of the view, or of one interval; returns what was lifted. Raises ConfigError where nothing of it is
    held."""
    with env.ledger() as conn:
        standing = holds.open_of(conn, view)
        lifted = _chosen(view, standing, interval, zone)
        for one in lifted:
            rollbacks.revoke_answers(conn, one)
        holds.release(conn, lifted, by)
        conn.commit()
    return lifted


def _chosen(view: str, standing: Sequence[Hold], interval: str | None, zone: tzinfo) -> list[Hold]:
    if not standing:
        raise ConfigError(f"Nothing of results.{view} is held.", "Nothing to do: runs of it publish.")
    if interval is not None:
        held = choose(interval, [one.interval for one in standing if one.interval], zone)
        return [one for one in standing if one.interval == held]
    whole = [one for one in standing if one.interval is None]
    if not whole:
        commands = "; ".join(sorted({one.release for one in standing}))
        raise ConfigError(f"results.{view} is not held as a whole, but {_intervals(standing)}.", f"Run {commands}.")
    return whole


def _intervals(standing: Sequence[Hold]) -> str:
    return pluralised(len({one.interval for one in standing}), "interval") + " of it"


def history(env: Environment, view: str, most: int) -> tuple[list[Event], list[Hold]]:
    """The newest publications of a view and what is held of it. Raises ConfigError where nothing was published."""
    with env.ledger() as conn:
        conn.read_only = True
        events = view_history.history(conn, view, most)
        if not events:
            raise ConfigError(
                f"No batch was published to a view {view!r}.",
                "Name it as job.yaml does (`publish.view`).",
            )
        return events, holds.open_of(conn, view)


def _shown_intervals(conn: Connection, view: str) -> list[Interval]:
    shown = publications.current(conn, view)
    listed = publications.parts(conn, shown.publish_seq) if shown else []
    return [(one.interval_start, one.interval_end) for one in listed if one.interval_start and one.interval_end]

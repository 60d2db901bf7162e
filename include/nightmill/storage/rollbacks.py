"""Rollbacks: an earlier publication's parts shown again by a new publication, and what is known of all of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from psycopg.rows import class_row

from nightmill.domain.errors import ConfigError, Terminal, Transient
from nightmill.domain.interval_choice import Interval
from nightmill.domain.parts import Part
from nightmill.domain.publish_settings import PublishMode
from nightmill.domain.rollback_parts import parts_for
from nightmill.storage import holds, publications, sql
from nightmill.storage.batches import Batch
from nightmill.storage.holds import Hold, NewHold
from nightmill.storage.ledger import Connection, refusals
from nightmill.storage.publications import Published

KINDS = ("publish", "rollback")  # what can be gone back to: the others change no reader's rows


@dataclass(frozen=True, slots=True)
class Plan:
    """What a rollback would do: show `parts`, which are those of publication `target`, or of one interval of it. None
    as the target: the interval is shown no more."""

    shown: Published
    target: int | None
    interval: Interval | None
    parts: list[Part]
    taken_back: list[int]
    brought_back: list[Part]


@dataclass(frozen=True, slots=True)
class Event:
    """A publication of a view's history. `kept` says whether the rows of all its parts are still there; `hold` is what
    a rollback set."""

    publish_seq: int
    kind: str
    batch_id: int | None
    published_at: datetime
    published_by: str
    approved_by: str | None
    note: str | None
    counts: dict[str, int]
    gaps: int
    shown: bool
    interval_start: datetime | None
    interval_end: datetime | None
    intervals: int
    batch_ids: list[int]
    part_ids: list[int]
    kept: bool = False
    hold: Hold | None = None


def plan(conn: Connection, view: str, to: int | None = None, interval: Interval | None = None) -> Plan:
    """What going back would do: to a publication, in one interval only, or to the publication before. Raises
    ConfigError for a view that shows nothing or a publication that is none, Terminal where nothing is kept."""
    shown = publications.current(conn, view)
    if shown is None:
        raise ConfigError(f"No batch was published to a view {view!r}.", "Name it as job.yaml does (`publish.view`).")
    now = publications.parts(conn, shown.publish_seq)
    if interval is not None:
        return _plan_interval(conn, shown, now, interval)
    target = _target(conn, shown, to)
    then = publications.parts(conn, target)
    if shown.mode is PublishMode.BY_INTERVAL and not all(one.has_interval for one in then):
        raise Terminal(
            f"Publication {target} of results.{view} was made before the view showed intervals: it has none.",
            f"Name a later one with --to: `python -m nightmill history {view}` lists them.",
        )
    return _planned(conn, shown, now, then, {one.batch_id for one in then}, target, None)


def _target(conn: Connection, shown: Published, to: int | None) -> int:
    view = shown.view_name
    history = f"`python -m nightmill history {view}` lists them"
    if to is None:
        values = {"view_name": view, "publish_seq": shown.publish_seq}
        row = conn.execute(sql.text("rollback_target"), values).fetchone()
        if row is None:
            raise Terminal(
                f"results.{view} has no earlier publication that is kept and was not rolled back.",
                f"Publish a corrected run; or name a publication with --to: {history}.",
            )
        return int(row[0])
    row = conn.execute(sql.text("publication_get"), {"view_name": view, "publish_seq": to}).fetchone()
    if row is None:
        raise ConfigError(f"results.{view} has no publication {to}.", f"Name another one: {history}.")
    if to == shown.publish_seq:
        raise ConfigError(f"results.{view} shows publication {to} already.", f"Name another one: {history}.")
    if row[1] not in KINDS:
        raise ConfigError(
            f"Publication {to} of results.{view} is a {row[1]}, which shows what the one before it showed.",
            f"Name a publish or a rollback: {history}.",
        )
    return to


def _plan_interval(conn: Connection, shown: Published, now: list[Part], interval: Interval) -> Plan:
    view, start = shown.view_name, interval[0].isoformat()
    if shown.mode is not PublishMode.BY_INTERVAL:
        raise ConfigError(
            f"results.{view} is published with mode {shown.mode}: it has no intervals to roll back one by one.",
            "Leave the interval out.",
        )
    mine = next((one for one in now if one.interval == interval), None)
    if mine is None:
        raise ConfigError(
            f"results.{view} does not show the interval that begins at {start}.",
            f"Name one that it shows: `python -m nightmill history {view}`.",
        )
    values = {"view_name": view, "publish_seq": shown.publish_seq, "batch_id": mine.batch_id}
    bounds = {"interval_start": interval[0], "interval_end": interval[1]}
    row = conn.execute(sql.text("rollback_interval_before"), values | bounds).fetchone()
    wanted = {one.batch_id for one in now} - {mine.batch_id} | set(row[1] if row else ())
    then = publications.parts(conn, row[0]) if row else []
    return _planned(conn, shown, now, then, wanted, row[0] if row else None, interval)


def _planned(
    conn: Connection,
    shown: Published,
    now: Sequence[Part],
    then: Sequence[Part],
    wanted: Collection[int],
    target: int | None,
    interval: Interval | None,
) -> Plan:
    kept = rows_kept(conn, shown.view_name, {one.part_id for one in (*now, *then)})
    then = [one for one in then if one.part_id in kept]
    found = parts_for(wanted, then, now)
    if found is None or (target is not None and not wanted):
        raise _not_kept(shown.view_name, target)
    since = {one.batch_id: one.shown_since for one in now}
    parts = [replace(one, shown_since=since.get(one.batch_id)) for one in found]
    return Plan(
        shown=shown,
        target=target,
        interval=interval,
        parts=parts,
        taken_back=sorted(since.keys() - set(wanted)),
        brought_back=[one for one in parts if one.batch_id not in since],
    )


def _not_kept(view: str, target: int | None) -> Terminal:
    of = f"of publication {target} " if target is not None else ""
    return Terminal(
        f"The rows {of}of results.{view} are not all kept: maintenance dropped some, or merged them with others.",
        f"Name a publication that is kept: `python -m nightmill history {view}` lists them. Or run the job again.",
    )


def carry_out(
    conn: Connection, one: Plan, by: str, *, reason: str | None, revoke: bool, request: str | None = None
) -> tuple[Published, Hold]:
    """Show what was planned and hold what is taken back, in the caller's transaction. Raises Terminal where something
    was published since the plan was made, or its rows were dropped since."""
    view = one.shown.view_name
    before = publications.current(conn, view, lock=True)
    now = before.publish_seq if before else "none"
    if now != one.shown.publish_seq:
        raise Terminal(
            f"results.{view} has changed meanwhile: it shows publication {now} now.",
            f"Look at `python -m nightmill history {view}`, and roll back again if that is still right.",
        )
    returning = [part.batch_id for part in one.brought_back]
    if conn.execute(sql.text("fences_try_shared"), {"batch_ids": returning}).fetchone() is not None:
        raise Transient(
            f"Maintenance works on a batch that results.{view} would show again.", "Roll back again in a minute."
        )
    parts = {part.part_id for part in one.parts}
    if rows_kept(conn, view, parts) != parts:
        raise _not_kept(view, one.target)
    now_shown = publications.flip(conn, view, "rollback", one.parts, by, note=reason)
    hold = holds.add(
        conn,
        NewHold(
            view_name=view,
            interval=one.interval,
            publish_seq=now_shown.publish_seq,
            taken_back=one.taken_back,
            reason=reason,
            held_by=by,
            request=request,
            revoke=revoke,
        ),
    )
    return now_shown, hold


def revoke_answers(conn: Connection, hold: Hold) -> int:
    """Take the answers of what was taken back out of reuse, except those that stay shown; returns how many. Again
    changes nothing."""
    if not hold.revoke or hold.revoked is not None:
        return hold.revoked or 0
    revoked = _revoke(conn, hold.view_name, hold.taken_back, hold.publish_seq)
    with refusals():
        conn.execute(sql.text("hold_note_revoked"), {"hold_id": hold.hold_id, "revoked": revoked})
    return revoked


def revoke_rejected(conn: Connection, batch: Batch) -> int:
    """Take the answers of a batch that a person rejected out of reuse, except those that readers see; returns how
    many."""
    shown = publications.current(conn, batch.view_name)
    return _revoke(conn, batch.view_name, [batch.batch_id], shown.publish_seq if shown else None)


def _revoke(conn: Connection, view: str, taken_back: list[int], publish_seq: int | None) -> int:
    shown = [one.part_id for one in publications.parts(conn, publish_seq)] if publish_seq is not None else []
    query = sql.text("results_revoke").format(rows=sql.rows_table(view))
    return conn.execute(query, {"taken_back": taken_back, "shown": shown}).rowcount


def intervals_changed(conn: Connection, hold: Hold) -> list[Interval]:
    """The intervals whose rows a rollback changed, which consumers may want to read again."""
    values = {"taken_back": hold.taken_back, "publish_seq": hold.publish_seq}
    return [(start, end) for start, end in conn.execute(sql.text("rollback_intervals"), values).fetchall()]


def rows_kept(conn: Connection, view: str, part_ids: Collection[int]) -> set[int]:
    """Those of some parts whose rows a view can show."""
    values = {"parent": f"rows_{view}", "part_ids": list(part_ids)}
    return {row[0] for row in conn.execute(sql.text("rows_kept"), values).fetchall()}


def history(conn: Connection, view: str, most: int) -> list[Event]:
    """The newest publications of a view."""
    with conn.cursor(row_factory=class_row(Event)) as cursor:
        found: list[Event] = cursor.execute(
            sql.text("publications_history"), {"view_name": view, "most": most}
        ).fetchall()
    kept = rows_kept(conn, view, {part for one in found for part in one.part_ids})
    set_by = holds.of_publications(conn, view, [one.publish_seq for one in found])
    changes: list[dict[str, Any]] = [
        {"kept": bool(one.part_ids) and kept >= set(one.part_ids), "hold": set_by.get(one.publish_seq)} for one in found
    ]
    return [replace(one, **change) for one, change in zip(found, changes, strict=True)]

"""Rollbacks: an earlier publication's parts, or those of one interval, shown again by a new publication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nightmill.domain.errors import ConfigError, Terminal, Transient
from nightmill.domain.interval_choice import Interval
from nightmill.domain.merging import where_now
from nightmill.domain.parts import Part
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.storage import holds, merging, part_builds, publications, sql, view_history
from nightmill.storage.batches import Batch
from nightmill.storage.holds import Hold, NewHold
from nightmill.storage.part_builds import Built
from nightmill.storage.publications import Published
from nightmill.storage.session import Connection, refusals

KINDS = ("publish", "rollback")  # what can be gone back to: the others change no reader's rows
NEWEST = 50  # publications among which those that are kept are named


@dataclass(frozen=True, slots=True)
class Plan:
    """What a rollback would do: show `parts`, which are those of publication `target`, or of one interval of it. None
    as the target: the interval is shown no more. `halved` are merged parts that hold what is taken back beside what
    stays: they are written anew first."""

    shown: Published
    target: int | None
    interval: Interval | None
    parts: list[Part]
    taken_back: list[int]
    brought_back: list[Part]
    halved: tuple[int, ...] = ()


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
    found = _where_now(conn, shown, then)
    if not found or not _listed_whole(conn, view, target):
        raise _not_kept(conn, view, target)
    return _planned(shown, now, found, target, None)


def _target(conn: Connection, shown: Published, to: int | None) -> int:
    view = shown.view_name
    history = f"`python -m nightmill history {view}` lists them"
    if to is None:
        values = {"view_name": view, "publish_seq": shown.publish_seq}
        row = conn.execute(sql.text("publication/rollback_target"), values).fetchone()
        if row is None:
            raise Terminal(
                f"results.{view} has no earlier publication that is kept and was not rolled back.",
                f"Publish a corrected run; or name a publication with --to: {history}.",
            )
        return int(row[0])
    row = conn.execute(sql.text("publication/get"), {"view_name": view, "publish_seq": to}).fetchone()
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
    row = conn.execute(sql.text("publication/rollback_interval_before"), values | bounds).fetchone()
    target = int(row[0]) if row else None
    back = [one for one in publications.parts(conn, row[0]) if one.batch_id in row[1]] if row else []
    left = [one for one in now if one is not mine]
    found = _where_now(conn, shown, [*left, *back])
    if found is not None:
        return _planned(shown, now, found, target, interval)
    found = _where_now(conn, shown, back)
    if found is None:
        raise _not_kept(conn, view, target)
    return _planned(shown, now, [*left, *found], target, interval, halved=(mine.part_id,))


def _planned(
    shown: Published,
    now: Sequence[Part],
    then: Sequence[Part],
    target: int | None,
    interval: Interval | None,
    halved: tuple[int, ...] = (),
) -> Plan:
    since = {one.batch_id: one.shown_since for one in now}
    parts = [replace(one, shown_since=since.get(one.batch_id)) for one in then]
    return Plan(
        shown=shown,
        target=target,
        interval=interval,
        parts=parts,
        taken_back=sorted(since.keys() - {one.batch_id for one in parts}),
        brought_back=[one for one in parts if one.batch_id not in since],
        halved=halved,
    )


def _where_now(conn: Connection, shown: Published, listed: Sequence[Part]) -> list[Part] | None:
    """A list in the parts that exist; None where rows of it are gone. Only intervals are merged: by key, a batch's own
    part is not what the view showed of it."""
    if shown.mode is PublishMode.BY_INTERVAL:
        return where_now(listed, view_history.contents(conn, shown.view_name))
    part_ids = {one.part_id for one in listed}
    return list(listed) if view_history.rows_kept(conn, shown.view_name, part_ids) == part_ids else None


def _listed_whole(conn: Connection, view: str, publish_seq: int) -> bool:
    row = conn.execute(sql.text("publication/get"), {"view_name": view, "publish_seq": publish_seq}).fetchone()
    return row is not None and bool(row[3])


def _not_kept(conn: Connection, view: str, target: int | None) -> Terminal:
    of = f"of publication {target} " if target is not None else ""
    kept = [one for one in view_history.history(conn, view, NEWEST) if one.kept and one.kind in KINDS and not one.shown]
    numbers = ", ".join(str(one.publish_seq) for one in kept)
    named = f"Name one that is kept with --to: {numbers}" if kept else "No earlier publication is kept"
    return Terminal(
        f"The rows {of}of results.{view} are not all kept: maintenance dropped some, or merged them with others.",
        f"{named}. Or run the job again.",
    )


def again(conn: Connection, one: Plan) -> Plan:
    """The same rollback of one interval, from what the view shows by now. Raises Terminal where it would change
    something else."""
    now = plan(conn, one.shown.view_name, None, one.interval)
    if now.taken_back != one.taken_back or _batches(now.brought_back) != _batches(one.brought_back):
        raise _changed(one.shown.view_name, now.shown)
    return now


def _batches(parts: Sequence[Part]) -> list[int]:
    return [one.batch_id for one in parts]


def _changed(view: str, now: Published | None) -> Terminal:
    return Terminal(
        f"results.{view} has changed meanwhile: it shows publication {now.publish_seq if now else 'none'} now.",
        f"Look at `python -m nightmill history {view}`, and roll back again if that is still right.",
    )


def build(conn: Connection, one: Plan) -> Built | None:
    """The merged part that holds what is taken back, written anew without it, in chunks that are committed; None where
    nothing of the plan was merged."""
    if not one.halved:
        return None
    listed = publications.parts(conn, one.shown.publish_seq)
    gone = [part for part in listed if part.batch_id in one.taken_back]
    return merging.build_without(conn, one.shown, gone[0].batch_id, gone)


def carry_out(
    conn: Connection,
    one: Plan,
    by: str,
    *,
    reason: str | None,
    revoke: bool,
    request: str | None = None,
    built: Built | None = None,
) -> tuple[Published, Hold]:
    """Show what was planned, with what was `built` for it, and hold what is taken back, in the caller's transaction.
    Raises Terminal where something was published since the plan was made, or its rows were dropped since; OutOfDate
    where that happened while a part was built."""
    view = one.shown.view_name
    before = publications.current(conn, view, lock=True)
    if built is not None:
        part_builds.attach(conn, built, before.publish_seq if before else None)
    if before is None or before.publish_seq != one.shown.publish_seq:
        raise _changed(view, before)
    returning = _batches(one.brought_back)
    if conn.execute(sql.text("fence/try_shared"), {"batch_ids": returning}).fetchone() is not None:
        raise Transient(
            f"Maintenance works on a batch that results.{view} would show again.", "Roll back again in a minute."
        )
    listed = _kept(conn, one, built)
    now_shown = publications.flip(conn, view, "rollback", listed, by, note=reason)
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


def _kept(conn: Connection, one: Plan, built: Built | None) -> list[Part]:
    """The parts to show, those that were built anew in place of what they replace. Raises Terminal where rows of one
    are gone."""
    view = one.shown.view_name
    anew = dict.fromkeys(built.replaces, built.part_id) if built is not None else {}
    listed = [replace(part, part_id=anew.get(part.part_id, part.part_id)) for part in one.parts]
    parts = {part.part_id for part in listed}
    if view_history.rows_kept(conn, view, parts) != parts:
        raise _not_kept(conn, view, one.target)
    return listed


def revoke_answers(conn: Connection, hold: Hold) -> int:
    """Take the answers of what was taken back out of reuse, except those that stay shown; returns how many. Again
    changes nothing."""
    if not hold.revoke or hold.revoked is not None:
        return hold.revoked or 0
    revoked = _revoke(conn, hold.view_name, hold.taken_back, hold.publish_seq)
    with refusals():
        conn.execute(sql.text("hold/note_revoked"), {"hold_id": hold.hold_id, "revoked": revoked})
    return revoked


def revoke_rejected(conn: Connection, batch: Batch) -> int:
    """Take the answers of a batch that a person rejected out of reuse, except those that readers see; returns how
    many."""
    shown = publications.current(conn, batch.view_name)
    return _revoke(conn, batch.view_name, [batch.batch_id], shown.publish_seq if shown else None)


def _revoke(conn: Connection, view: str, taken_back: list[int], publish_seq: int | None) -> int:
    shown = [one.part_id for one in publications.parts(conn, publish_seq)] if publish_seq is not None else []
    query = sql.text("result/revoke").format(rows=sql.rows_table(view))
    return conn.execute(query, {"taken_back": taken_back, "shown": shown}).rowcount


def intervals_changed(conn: Connection, hold: Hold) -> list[Interval]:
    """The intervals whose rows a rollback changed, which consumers may want to read again."""
    values = {"taken_back": hold.taken_back, "publish_seq": hold.publish_seq}
    return [(start, end) for start, end in conn.execute(sql.text("publication/rollback_intervals"), values).fetchall()]

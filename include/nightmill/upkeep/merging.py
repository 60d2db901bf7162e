"""Merging: keeps what readers scan in few parts. Old intervals are merged, those beyond `publish.keep_intervals`
go, and parts that no publication needs any more are taken away once no snapshot sees them.

At most `MOST_ATTACHED` parts of a view are kept, hidden ones included: beyond that the oldest ended batches lose their
rows before their time, and cannot be replayed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from nightmill.domain.maintenance import Action, Sweep
from nightmill.domain.merging import groups, needed
from nightmill.domain.parts import Part
from nightmill.domain.wording import pluralised
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.settings.job import Maintenance
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.storage import contracts, fence, maintenance, merging, part_builds, publications, retention, session
from nightmill.storage.merging import Attached, ShownView
from nightmill.storage.publications import Published
from nightmill.storage.session import Connection

BY = "maintenance"
MOST_ATTACHED = 24  # 32 are promised: so many may come between two sweeps
FIRST_TRY_S = 0.3  # publishing waits meanwhile
PART_TIMEOUT_S = 30.0  # how long old readers of a view may hold one part


def run(jobs: Mapping[str, JobDefinition], owner_dsn: str, *, dry_run: bool = False) -> list[Action]:
    """Each view by itself. Safe to repeat from any point: what a killed sweep built is dropped by the next one."""
    done: list[Action] = []
    with session.connect(owner_dsn, application="nightmill maintenance") as conn:
        views = merging.shown_views(conn)
        conn.commit()
        for view in views:
            with maintenance.isolated(done, Sweep.MERGING, unit=f"results.{view.view_name}", conn=conn):
                definition = jobs.get(view.job) or contracts.load(conn, view.contract_id)
                conn.commit()
                done.extend(_of_view(conn, view, definition, dry_run))
    return done


def _of_view(conn: Connection, view: ShownView, definition: JobDefinition, dry_run: bool) -> Iterator[Action]:
    rules = definition.job.maintenance
    if not dry_run:
        part_builds.drop_left(conn, view.view_name, None)
    if view.mode is PublishMode.BY_INTERVAL:
        yield from _drop_intervals(conn, view, definition.job.publish.keep_intervals, dry_run)
        yield from _merge(conn, view, rules, dry_run)
    yield from _retire(conn, view, rules, dry_run)


def _shown(conn: Connection, view: ShownView) -> Published:
    shown = publications.current(conn, view.view_name)
    assert shown is not None
    return shown


def _drop_intervals(conn: Connection, view: ShownView, keep: int | None, dry_run: bool) -> Iterator[Action]:
    shown = _shown(conn, view)
    listed = publications.parts(conn, shown.publish_seq)
    conn.commit()
    if keep is None or len(listed) <= keep:
        return
    gone = listed[:-keep]  # they come by interval
    if not dry_run:
        built = merging.build_without(conn, shown, None, gone)
        merging.flip_built(conn, shown, built, "retention", {one.batch_id for one in gone}, BY)
    yield _said(view, f"shows its newest {keep} intervals only: {pluralised(len(gone), 'interval')} gone")


def _merge(conn: Connection, view: ShownView, rules: Maintenance, dry_run: bool) -> Iterator[Action]:
    shown = _shown(conn, view)
    listed = publications.parts(conn, shown.publish_seq)
    kept = _kept_lists(conn, view, rules)
    conn.commit()
    for group in groups(listed, kept):
        if not dry_run:
            shown = merging.merge(conn, shown, group, BY)
        yield _said(view, f"{pluralised(len(group), 'part')} merged into one")


def _kept_lists(conn: Connection, view: ShownView, rules: Maintenance) -> list[list[Part]]:
    return [publications.parts(conn, seq) for seq in merging.kept(conn, view.view_name, rules.keep_published)]


def _retire(conn: Connection, view: ShownView, rules: Maintenance, dry_run: bool) -> Iterator[Action]:
    hidden = _unneeded(conn, view, rules)
    taken = held = 0
    for one in hidden:
        if not dry_run and not _take_away(conn, view, rules, one):
            held += 1
            continue
        taken += 1
    if taken:
        yield _said(view, f"{pluralised(taken, 'part')} taken away that no publication needs")
    if held:
        yield _said(view, f"{pluralised(held, 'part')} still seen by older readers; the next sweep goes on")
    if not dry_run:
        oldest = min(merging.kept(conn, view.view_name, rules.keep_published), default=0)
        merging.trim_lists(
            conn, view.view_name, oldest, [one.part_id for one in merging.attached(conn, view.view_name)]
        )
        conn.commit()


def _unneeded(conn: Connection, view: ShownView, rules: Maintenance) -> list[Attached]:
    """What can be taken away: merged and built parts that nobody can go back to, batches' own parts whose rows lie in a
    merged one; and the oldest ended batches where too many parts are attached."""
    parts = merging.attached(conn, view.view_name)
    keep = _needed(conn, view, rules, parts)
    built = [one for one in parts if one.part_id < 0]
    holders = [one for one in built if one.part_id in keep] if view.mode is PublishMode.BY_INTERVAL else []
    going = [one for one in parts if one.part_id not in keep]
    first = [one for one in going if one.part_id < 0 or any(one.batch_ids < other.batch_ids for other in holders)]
    over = len(parts) - len(first) - MOST_ATTACHED
    spare = _spare(conn, view) if over > 0 else set()
    conn.commit()
    own = [one for one in going if one not in first and one.part_id in spare]
    return [*first, *own[: max(over, 0)]]


def _needed(conn: Connection, view: ShownView, rules: Maintenance, parts: Sequence[Attached]) -> set[int]:
    listed = publications.parts(conn, _shown(conn, view).publish_seq)
    kept = _kept_lists(conn, view, rules)
    if view.mode is not PublishMode.BY_INTERVAL:
        return {one.part_id for publication in (listed, *kept) for one in publication}
    return needed(listed, kept, {one.part_id: one.batch_ids for one in parts})


def _spare(conn: Connection, view: ShownView) -> set[int]:
    """Ended batches that nothing but their own time keeps."""
    return {
        one.batch_id
        for one in retention.candidates(conn)
        if one.view_name == view.view_name and not (one.in_flight or one.needed_by_child or one.newest_of_job)
    }


def _take_away(conn: Connection, view: ShownView, rules: Maintenance, one: Attached) -> bool:
    if one.hidden_by is not None and merging.can_be_seen(conn, one.hidden_by):
        conn.commit()
        return False
    conn.commit()
    conn.autocommit = True
    try:
        with fence.alone(conn, one.part_id):  # nobody replays it meanwhile
            with merging.held(conn, view.view_name):  # nobody rolls back to it either, until it cannot be listed
                if one.part_id not in {again.part_id for again in _unneeded(conn, view, rules)}:
                    return True
                if merging.retire(conn, view.view_name, one.part_id, FIRST_TRY_S):
                    return True
            if not merging.is_leaving(conn, view.view_name, one.part_id):
                return False
            return merging.retire(conn, view.view_name, one.part_id, PART_TIMEOUT_S)
    finally:
        if not conn.closed:
            conn.autocommit = False


def _said(view: ShownView, what: str) -> Action:
    return Action(Sweep.MERGING, f"results.{view.view_name}: {what}")

"""Holds: what a rollback took back stays back until a person releases it. A hold is on a view or on one interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from nightmill.domain.errors import Blocked, Terminal
from nightmill.domain.interval_choice import Interval
from nightmill.domain.wording import batches_named
from nightmill.storage import sql
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection, refusals


@dataclass(frozen=True, slots=True)
class Hold:
    """What was taken back: these batches, by the publication `publish_seq`. `revoked` counts the answers that were
    revoked; None where that was not asked for or is still to be done."""

    hold_id: int
    view_name: str
    interval_start: datetime | None
    interval_end: datetime | None
    publish_seq: int
    taken_back: list[int]
    reason: str | None
    held_at: datetime
    held_by: str
    revoke: bool
    revoked: int | None
    released_at: datetime | None
    released_by: str | None

    @property
    def interval(self) -> Interval | None:
        """What is held of the view; None = all of it."""
        if self.interval_start is None or self.interval_end is None:
            return None
        return self.interval_start, self.interval_end

    @property
    def what(self) -> str:
        """What is held, in words."""
        if self.interval is None:
            return f"the view results.{self.view_name}"
        return f"the interval {self.interval[0].isoformat()} of results.{self.view_name}"

    @property
    def why(self) -> str:
        """Who rolled back what and when, in words."""
        reason = f" ({self.reason})" if self.reason else ""
        when = f"{self.held_at:%Y-%m-%d %H:%M} UTC"
        return f"{self.held_by} rolled back {batches_named(self.taken_back)} on {when}{reason}"

    @property
    def release(self) -> str:
        """The command that lifts it."""
        interval = f" --interval {self.interval[0].isoformat()}" if self.interval else ""
        return f"python -m nightmill release {self.view_name}{interval}"

    def __str__(self) -> str:
        """For people."""
        return f"{self.what} is held: {self.why}"


@dataclass(frozen=True, slots=True)
class NewHold:
    """What `add` writes. `request` names the run that asked for it: its retry adds nothing."""

    view_name: str
    interval: Interval | None
    publish_seq: int
    taken_back: Sequence[int]
    reason: str | None
    held_by: str
    request: str | None
    revoke: bool


def add(conn: Connection, new: NewHold) -> Hold:
    """Hold what a rollback took back, in its transaction."""
    start, end = new.interval or (None, None)
    values = {name: getattr(new, name) for name in new.__slots__ if name != "interval"}
    with refusals():
        [made] = _read(conn, "hold/add", values | {"interval_start": start, "interval_end": end})
    return made


def open_of(conn: Connection, view: str) -> list[Hold]:
    """The holds that nobody has lifted yet, newest first."""
    return _read(conn, "hold/open", {"view_name": view})


def of_publications(conn: Connection, view: str, publish_seqs: Sequence[int]) -> dict[int, Hold]:
    """The holds that these rollbacks set, lifted or not."""
    values = {"view_name": view, "publish_seqs": list(publish_seqs)}
    return {one.publish_seq: one for one in _read(conn, "hold/of_publications", values)}


def of_request(conn: Connection, request: str) -> Hold | None:
    """What a run has done before, if it has."""
    return next(iter(_read(conn, "hold/of_request", {"request": request})), None)


def newest_of_batch(conn: Connection, batch: Batch) -> Hold | None:
    """The rollback that took a batch back last, lifted or not."""
    values = {"view_name": batch.view_name, "batch_id": batch.batch_id}
    return next(iter(_read(conn, "hold/newest_of_batch", values)), None)


def on(conn: Connection, view: str, start: datetime | None, end: datetime | None) -> Hold | None:
    """The hold that keeps a run of this interval from publishing: one of the view, or of an interval that overlaps."""
    return next((one for one in open_of(conn, view) if _meets(one, start, end)), None)


def on_batch(conn: Connection, batch: Batch) -> Hold | None:
    """The hold that keeps a batch from being published."""
    return on(conn, batch.view_name, batch.data_interval_start, batch.data_interval_end)


def _meets(hold: Hold, start: datetime | None, end: datetime | None) -> bool:
    if hold.interval is None:
        return True
    return start is not None and end is not None and start < hold.interval[1] and hold.interval[0] < end


def refuse_held(conn: Connection, batch: Batch) -> None:
    """Raise Blocked where the batch would replace what was taken back. Under the view's lock a rollback can come
    before or after, and not in between."""
    hold = on_batch(conn, batch)
    if hold is not None:
        raise refusal(hold, "publish")


def refuse_revoked(conn: Connection, parent: Batch) -> None:
    """Raise Terminal for a replay of a batch whose answers were revoked: its child would carry them."""
    hold = newest_of_batch(conn, parent)
    if hold is not None and hold.revoke:
        raise Terminal(
            f"The answers of batch {parent.batch_id} were revoked: {hold.why}.",
            "Trigger a new run, which asks for them again.",
        )


def refusal(hold: Hold, task: str) -> Blocked:
    """What a run is told that meets a hold in this task."""
    cause = f"{str(hold)[0].upper()}{str(hold)[1:]}."
    return Blocked(cause, f"Once runs may replace it: `{hold.release}`; then clear {task}.")


def release(conn: Connection, lifted: Sequence[Hold], by: str) -> None:
    """Lift holds. Raises IllegalTransition where revoking their answers was asked for and is not done."""
    with refusals():
        conn.execute(sql.text("hold/release"), {"hold_ids": [one.hold_id for one in lifted], "released_by": by})


def _read(conn: Connection, query: str, values: Mapping[str, object]) -> list[Hold]:
    with conn.cursor(row_factory=class_row(Hold)) as cursor:
        return cursor.execute(sql.text(query), values).fetchall()

"""A job's rows table and view: made by the owner (`python -m nightmill apply`), never by a run.

New output fields become new columns in place, and may go again: a column that can be null is null in the rows of a
contract that does not have it. A changed type, or a field that was never null and is gone, is an incompatible schema
and needs a new view name, so that nobody's query breaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from psycopg import errors
from psycopg import sql as composed
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from nightmill.domain.errors import ConfigError
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.output.columns import PROVENANCE_COLUMNS, Column
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.storage import publications, sql
from nightmill.storage.session import Connection

SHOWN = (
    "source_id", "source_version", "tenant", "domain", "batch_id", "result_id", "reused", "model", "prompt_version",
    "answered_at", "citations", "data_interval_start", "data_interval_end", "published_at",
)  # fmt: skip
"""What a view tells of each row beside its job's own columns."""

SHOWN_LAST = ("gap_reason",)  # behind a new view's own columns


def existing_columns(conn: Connection, view: str) -> list[Column]:
    """The typed columns of a view's table, in order; empty when it does not exist."""
    rows = conn.execute(sql.text("view/rows_columns"), {"table": f"rows_{view}"}).fetchall()
    return [Column(name, kind) for name, kind in rows if name not in PROVENANCE_COLUMNS]


def count_rows(conn: Connection, view: str, part_id: int) -> int:
    """Rows of a part that hold an answer."""
    row = conn.execute(sql.text("part/count_rows").format(rows=sql.rows_table(view)), {"part_id": part_id}).fetchone()
    return int(row[0]) if row else 0


def job_of(conn: Connection, view: str) -> str | None:
    """Whose view it is; None for one that `apply` has not seen."""
    row = conn.execute(sql.text("view/job"), {"view_name": view}).fetchone()
    return row[0] if row else None


def nullable_columns(conn: Connection, view: str) -> frozenset[str]:
    """Columns that output.py may leave out: null by their type, or added to the view later, so that its readers know
    rows without them."""
    row = conn.execute(sql.text("view/nullable"), {"view_name": view}).fetchone()
    return frozenset(row[0]) if row else frozenset()


def refuse_unapplied(conn: Connection, definition: JobDefinition) -> None:
    """Raise ConfigError when the job's table is missing, lacks one of its columns or has it with another type."""
    view = definition.job.publish.view
    have = existing_columns(conn, view)
    _refuse_incompatible(view, have, definition.columns, nullable_columns(conn, view))
    names = {column.name for column in have}
    missing = [column.name for column in definition.columns if column.name not in names]
    if publications.mode_of(conn, view) is not definition.job.publish.mode:
        missing.append(f"publish.mode: {definition.job.publish.mode}")
    if missing:
        raise ConfigError(
            f"The view results.{view} of job {definition.name} is not set up for {', '.join(missing)}.",
            "Run `python -m nightmill apply` with the owner's connection (on the local stack: `make up`); a task that "
            "failed for it can be cleared then.",
        )


def apply(conn: Connection, definition: JobDefinition, jobs: Set[str] | None = None) -> str:
    """Create or extend the job's table and view. Returns `created`, `extended`, `redefined` (the view is of an older
    version), `described` (comments of its columns changed) or `unchanged`. Needs the owner role.

    `jobs` are those that have a folder. Raises ConfigError for an incompatible change, or when another job owns the
    view.
    """
    view = definition.job.publish.view
    conn.execute("select pg_advisory_xact_lock(7106, 0)")
    conn.execute("set local role nightmill_owner")
    _claim(conn, view, definition, jobs)
    moved = _set_mode(conn, view, definition.job.publish.mode)
    have = existing_columns(conn, view)
    _refuse_incompatible(view, have, definition.columns, nullable_columns(conn, view))
    new = [column for column in definition.columns if column not in have]
    of_today = not moved and view not in unprotected(conn) and {*SHOWN, *SHOWN_LAST} <= set(_view_columns(conn, view))
    outcome = "created" if not have else "extended" if new else "unchanged" if of_today else "redefined"
    if outcome != "unchanged":
        with _beside_readers(view):
            if not have:
                _create(conn, view, definition.columns)
            _extend(conn, view, new if have else [])
            _define_view(conn, view, existing_columns(conn, view))
            protect(conn, view)
    _note_nullable(conn, view, definition.columns, added=new if have else [])
    described = _describe(conn, view, definition.columns)
    return "described" if outcome == "unchanged" and described else outcome


def _note_nullable(conn: Connection, view: str, columns: Sequence[Column], added: Sequence[Column]) -> None:
    names = [*(column.name for column in columns if column.nullable), *(column.name for column in added)]
    conn.execute(sql.text("view/note_nullable"), {"view_name": view, "names": names})


def _describe(conn: Connection, view: str, columns: Sequence[Column]) -> bool:
    """Put what output.py says of a field on the view's column; whether anything changed. A field that says nothing
    leaves a comment that somebody else made."""
    have: dict[str, str | None] = dict(conn.execute(sql.text("view/comments"), {"view": view}).fetchall())
    changed = [column for column in columns if column.comment and column.comment != have.get(column.name)]
    for column in changed:
        place = composed.Identifier("results", view, column.name)
        conn.execute(
            composed.SQL("comment on column {} is {}").format(place, composed.Literal(column.comment.replace("\0", "")))
        )
    return bool(changed)


def unprotected(conn: Connection) -> dict[str, str]:
    """Views, with their jobs, that could show a reader's own functions rows of other batches: `apply` protects them."""
    return dict(conn.execute(sql.text("view/unprotected")).fetchall())


def protect(conn: Connection, view: str) -> None:
    """Let a view show the published batch only, whatever functions its readers call. Needs the owner role."""
    conn.execute("set local role nightmill_owner")
    with _beside_readers(view):
        by_interval = publications.mode_of(conn, view) is PublishMode.BY_INTERVAL
        shown = sql.text("view/shows_listed_parts" if by_interval else "view/shows_one_part")
        parts = _parts_of(view)
        conn.execute(sql.text("view/protect").format(**parts, shown=shown.format(name=parts["name"])))


def _set_mode(conn: Connection, view: str, mode: PublishMode) -> bool:
    """Let the view show what job.yaml says; whether that changed. Raises ConfigError where readers would lose what they
    see: what a view shows can become its first interval, and nothing else."""
    have = publications.mode_of(conn, view)
    if have is mode:
        return False
    shown = publications.current(conn, view, lock=True)
    if shown is not None:
        first = publications.parts(conn, shown.publish_seq)
        grows = (have, mode) == (PublishMode.REPLACE, PublishMode.BY_INTERVAL)
        if not grows or not all(one.has_interval for one in first):
            why = " by a run that had no data interval" if grows else ""
            raise ConfigError(
                f"job.yaml: publish.mode is {mode}, and results.{view} shows what was published with {have}{why}.",
                f"Put publish.mode: {have} back, or give publish.view a new name.",
            )
    conn.execute(sql.text("view/set_mode"), {"view_name": view, "mode": mode})
    return True


def _claim(conn: Connection, view: str, definition: JobDefinition, jobs: Set[str] | None) -> None:
    columns = [[column.name, column.sql_type] for column in definition.columns]
    values = {"view_name": view, "job": definition.name, "columns": Jsonb(columns)}
    row = conn.execute(sql.text("view/claim"), values | {"mode": definition.job.publish.mode}).fetchone()
    if row is None or row[0] == definition.name:
        return
    owner = row[0]
    cause = f"job {definition.name}: publish.view {view!r} belongs to the job {owner}"
    if jobs is None or owner in jobs:
        raise ConfigError(f"{cause}.", "Give each job a view of its own.")
    raise ConfigError(f"{cause}, which has no folder.", renamed(view, owner, definition.name))


@dataclass(frozen=True, slots=True)
class Orphan:
    """A view whose job has no folder. `batch_id` is what it shows, None before its first publication."""

    view_name: str
    job: str
    batch_id: int | None
    published_at: datetime | None

    def __str__(self) -> str:
        """For people."""
        shows = f"batch {self.batch_id}, as since {self.published_at:%Y-%m-%d}" if self.batch_id else "no rows"
        return f"results.{self.view_name} belongs to job {self.job}, which has no folder; it goes on showing {shows}"


def orphans(conn: Connection, jobs: Set[str]) -> list[Orphan]:
    """Views of deleted and renamed jobs."""
    with conn.cursor(row_factory=class_row(Orphan)) as cursor:
        return cursor.execute(sql.text("view/orphaned"), {"jobs": sorted(jobs)}).fetchall()


def renamed(view: str, owner: str, now: str = "NEW_NAME") -> str:
    """What can be done about a view whose job has no folder."""
    return (
        f"Name the folder {owner} again. Where it was renamed, as nightmill_owner: update nightmill.view_definition "
        f"set job = '{now}' where view_name = '{view}'; then `python -m nightmill apply` (answers belong to a job's "
        f"name: all are asked anew). Where nobody reads the view, as nightmill_owner: drop view results.{view};"
    )


def _refuse_incompatible(view: str, have: Sequence[Column], want: Sequence[Column], nullable: Set[str]) -> None:
    """A column that output.py leaves out is null in new rows, where readers must know null in it anyway."""
    types = {column.name: column.sql_type for column in want}
    for column in have:
        now = types.get(column.name)
        if now is None and column.name not in nullable:
            raise ConfigError(
                f"output.py: the field {column.name!r} of view {view} is gone.",
                "Put it back, or give publish.view a new name: readers of the old view still ask for it.",
            )
        if now is not None and now != column.sql_type:
            raise ConfigError(
                f"output.py: the type of {column.name!r} changed from {column.sql_type} to {now} for view {view}.",
                "Give publish.view a new name: readers of the old view keep their types.",
            )


def _create(conn: Connection, view: str, columns: Sequence[Column]) -> None:
    typed = composed.SQL("").join(composed.SQL(", {} {}").format(*_parts(column)) for column in columns)
    conn.execute(sql.text("view/create_rows").format(rows=sql.rows_table(view), typed=typed))


def _extend(conn: Connection, view: str, columns: Sequence[Column]) -> None:
    for column in columns:
        conn.execute(composed.SQL("alter table {} add column {} {}").format(sql.rows_table(view), *_parts(column)))


@contextmanager
def _beside_readers(view: str) -> Iterator[None]:
    try:
        yield
    except errors.LockNotAvailable as fault:
        raise ConfigError(f"Readers keep results.{view} busy.", "Run apply again at a quieter time.") from fault
    except errors.DuplicateTable as fault:
        raise ConfigError(
            f"The name rows_{view} is taken in schema nightmill, by the rows of a batch of another view.",
            f"Give publish.view another name than {view!r}, or wait until retention has dropped that batch.",
        ) from fault


def _define_view(conn: Connection, view: str, columns: Sequence[Column]) -> None:
    """Columns that the view has keep their places: a view can be replaced by one with more at its end only."""
    before = _view_columns(conn, view)
    shown = [
        *before,
        *(name for name in (*SHOWN, *(column.name for column in columns), *SHOWN_LAST) if name not in before),
    ]
    by_interval = publications.mode_of(conn, view) is PublishMode.BY_INTERVAL
    source = sql.text("view/source_of_intervals" if by_interval else "view/source_of_one_part")
    parts = _parts_of(view)
    since: composed.Composable = sql.text("view/published_at").format(name=parts["name"])
    if by_interval:
        since = composed.SQL("listed.shown_since as published_at")
    columns_shown = [since if name == "published_at" else composed.Identifier("rows", name) for name in shown]
    names = composed.SQL(", ").join(columns_shown)
    conn.execute(sql.text("view/define").format(**parts, names=names, source=source.format(**parts)))


def _parts_of(view: str) -> dict[str, composed.Composable]:
    return {
        "view": composed.Identifier("results", view),
        "rows": sql.rows_table(view),
        "name": composed.Literal(view),
    }


def _view_columns(conn: Connection, view: str) -> list[str]:
    return [name for (name,) in conn.execute(sql.text("view/columns"), {"view": view}).fetchall()]


def _parts(column: Column) -> tuple[composed.Composable, composed.Composable]:
    return composed.Identifier(column.name), composed.SQL(column.sql_type)

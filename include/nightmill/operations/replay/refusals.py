"""Which batches cannot be replayed, and what to do instead."""

from __future__ import annotations

from nightmill.domain.errors import Terminal
from nightmill.domain.states import BatchState
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.storage import batches, contracts, gates, holds, partitions, publications, replay
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection


def refuse_parent(conn: Connection, live: JobDefinition, parent: Batch) -> None:
    """Raise Terminal where the parent cannot be taken over, or where the child could never be published."""
    number, view = parent.batch_id, live.job.publish.view
    if parent.job != live.name or parent.view_name != view:
        raise Terminal(
            f"Batch {number} belongs to job {parent.job} and results.{parent.view_name}, not to {live.name} and "
            f"results.{view}.",
            "Name a batch of this job; a job with a new view needs a new run.",
        )
    holds.refuse_revoked(conn, parent)
    gates.refuse_revoked(conn, parent)
    if not parent.ended or parent.frozen_at is None or parent.state is BatchState.ESTIMATED:
        raise Terminal(
            f"Batch {number} is {parent.state}: only one that has ended with a manifest and results can be replayed.",
            "Wait for its end, or cancel it; after a dry run trigger a new run.",
        )
    lacks = not partitions.attached(conn, "item", number) or (
        parent.state is not BatchState.CANCELLED and partitions.holding(conn, f"rows_{view}", number) is None
    )
    if lacks:
        raise Terminal(f"The manifest or the rows of batch {number} were removed by retention.", "Trigger a new run.")
    _refuse_older(conn, parent)
    _refuse_missing_columns(conn, live, parent)


def _refuse_older(conn: Connection, parent: Batch) -> None:
    """By key an older batch adds ids and overwrites none, so none is too old there."""
    shown = publications.current(conn, parent.view_name)
    if shown is None or shown.mode is PublishMode.BY_KEY:
        return
    if shown.mode is PublishMode.BY_INTERVAL:
        publications.kept_beside_shown(conn, parent, shown)
    elif shown.newness > (publications.newness(parent) or []):
        raise Terminal(
            f"results.{parent.view_name} shows batch {shown.batch_id}, whose documents are newer than those of batch "
            f"{parent.batch_id}: a replay of it could not be published.",
            f"Replay batch {shown.batch_id}, or trigger a new run.",
        )


def _refuse_missing_columns(conn: Connection, live: JobDefinition, parent: Batch) -> None:
    frozen_under = batches.get(conn, parent.payload_batch_id or parent.batch_id).contract_id
    have = contracts.load(conn, frozen_under).payload_columns
    missing = sorted(set(live.payload_columns) - set(have))
    if missing:
        raise Terminal(
            f"The job now uses {', '.join(missing)}, which batch {parent.batch_id} did not keep of its source.",
            "Trigger a new run, which reads the source again; or use only what the batch kept: "
            f"{', '.join(sorted(have))}.",
        )


def refuse_second_child(conn: Connection, parent: Batch) -> None:
    """One child per parent. One that never got its manifest makes room: its run ended or was deleted."""
    number = replay.child_of(conn, parent.batch_id)
    if number is None:
        return
    child = batches.get(conn, number)
    if child.state is not BatchState.CREATED:
        raise Terminal(
            f"Batch {parent.batch_id} was replayed already: as batch {number}, which is {child.state}.",
            f"Replay batch {number}" + ("." if child.ended else " when it has ended, or clear its failed tasks."),
        )
    batches.cancel(conn, number, "another replay of its parent takes its place")

"""Batches: creation, lookup and state edges. Each edge is guarded by from-state and generation under the fence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from nightmill.domain.errors import IllegalTransition, Terminal
from nightmill.domain.states import BATCH_EDGES, GREEN_BATCH_STATES, TERMINAL_BATCH_STATES, BatchState
from nightmill.jobs.rules.publishing import Publishing
from nightmill.jobs.rules.run_options import RunOptions
from nightmill.storage import fence, sql
from nightmill.storage.session import Connection, refusals


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as the ledger holds it. Counts are items; tokens are prompt tokens."""

    batch_id: int
    job: str
    view_name: str
    dag_id: str
    run_id: str
    incarnation: int
    state: BatchState
    state_reason: str
    blocked_from: str | None
    blocked_by: str | None
    generation: int
    contract_id: int
    payload_batch_id: int | None
    dry_run: bool
    params: dict[str, Any]
    max_tries: int
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    item_count: int | None
    prompt_tokens: int | None
    estimate: dict[str, Any] | None
    counts: dict[str, int] | None
    created_at: datetime
    frozen_at: datetime | None
    ended_at: datetime | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", BatchState(self.state))

    @property
    def holder(self) -> fence.Holder:
        """What a stage that just read this batch holds."""
        return fence.Holder(self.batch_id, self.generation)

    @property
    def options(self) -> RunOptions:
        """What its run was asked to do, beside the values of its filters."""
        return RunOptions.of(self.params)

    @property
    def ended(self) -> bool:
        """Whether the batch is in a terminal state."""
        return self.state in TERMINAL_BATCH_STATES

    @property
    def at_rest(self) -> bool:
        """Whether its run has nothing left to do: it has ended, or is a preview."""
        return self.ended or self.state is BatchState.STAGED

    @property
    def without_data(self) -> bool:
        """Whether it has ended and nothing of it can be shown."""
        return self.ended and self.state not in GREEN_BATCH_STATES

    @property
    def is_preview(self) -> bool:
        """Whether its run was asked to leave the view as it is."""
        return self.options.is_preview

    @property
    def task_to_clear(self) -> str:
        """What a person clears to let it go on, as Airflow calls it; empty where nothing blocks it."""
        blocked_by = self.blocked_by or ""
        return f"run_shard ({blocked_by})" if blocked_by.startswith("shard ") else blocked_by

    @property
    def freezing_failed(self) -> bool:
        """Whether it will not be frozen before a person clears its task. False while Airflow tries again."""
        return self.state is BatchState.CREATED and self.blocked_by is not None


@dataclass(frozen=True, slots=True)
class Submission:
    """What a DAG run asks for."""

    job: str
    view_name: str
    dag_id: str
    run_id: str
    contract_id: int
    dry_run: bool
    params: dict[str, Any]
    note: str | None
    requested_by: str | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    max_tries: int = 0


def create(conn: Connection, submission: Submission) -> Batch:
    """A new batch in CREATED: the next incarnation of its run."""
    values = {name: getattr(submission, name) for name in submission.__slots__}
    values["params"] = Jsonb(submission.params)
    with conn.cursor(row_factory=class_row(Batch)) as cursor:
        row = cursor.execute(sql.text("batch/create"), values).fetchone()
    assert row is not None
    return row


def refuse_second_of_interval(conn: Connection, submission: Submission) -> None:
    """Raise Terminal where another run works on the same interval. Call right before `create`, in one transaction: two
    at a time wait for each other."""
    values = {name: getattr(submission, name) for name in submission.__slots__ if name != "params"}
    conn.execute(sql.text("batch/lock_interval"), values)
    row = conn.execute(sql.text("batch/of_interval"), values).fetchone()
    if row is not None:
        raise Terminal(
            f"Batch {row[0]} of run {row[1]} is {row[2]} and works on the same data interval.",
            f"Wait for its end and clear this task; or end it with `python -m nightmill cancel --batch {row[0]}`.",
        )


def newest_of_run(conn: Connection, dag_id: str, run_id: str) -> Batch | None:
    """The newest incarnation of a DAG run's batch."""
    with conn.cursor(row_factory=class_row(Batch)) as cursor:
        return cursor.execute(sql.text("batch/of_run"), {"dag_id": dag_id, "run_id": run_id}).fetchone()


def get(conn: Connection, batch_id: int) -> Batch:
    """One batch. Raises IllegalTransition when it does not exist (it was never created, or was erased)."""
    with conn.cursor(row_factory=class_row(Batch)) as cursor:
        row = cursor.execute(sql.text("batch/get"), {"batch_id": batch_id}).fetchone()
    if row is None:
        raise IllegalTransition(
            f"There is no batch {batch_id}.",
            "`python -m nightmill status` shows the last ones; an erased one needs a new run.",
        )
    return row


def without_data(batch: Batch) -> Terminal | None:
    """What a task says that looks at a batch which has ended unpublished, so that it is not green; None for others."""
    if not batch.without_data:
        return None
    return Terminal(
        f"Batch {batch.batch_id} of run {batch.run_id} is {batch.state} ({batch.state_reason}): nothing was published.",
        "Trigger a new run, or clear freeze_snapshot of this one with its downstream tasks: a new batch begins, and "
        "reuses every accepted answer that was not revoked.",
    )


def refuse_without_data(batch: Batch) -> None:
    """Raise it."""
    if fault := without_data(batch):
        raise fault


def note_cleared(conn: Connection, batch: Batch, max_tries: int) -> None:
    """Remember that freeze_snapshot was cleared while the batch lived: its retries are no clear of a later time."""
    if max_tries > batch.max_tries:
        conn.execute(sql.text("batch/note_cleared"), {"batch_id": batch.batch_id, "max_tries": max_tries})


def move(conn: Connection, batch: Batch, to: BatchState, reason: str, *, blocked_by: str | None = None) -> Batch:
    """Take one edge inside the caller's transaction: takes the exclusive fence, so call it first in one.

    Raises IllegalTransition for an edge that does not exist or whose from-state is stale, StaleWriter for an old
    generation.
    """
    if to not in BATCH_EDGES[batch.state]:
        raise IllegalTransition(
            f"Batch {batch.batch_id} cannot go from {batch.state} to {to}.", "Read the state again and start from it."
        )
    fence.enter_exclusive(conn, batch.holder)
    values = {
        "batch_id": batch.batch_id,
        "generation": batch.generation,
        "from_state": str(batch.state),
        "to_state": str(to),
        "reason": reason,
        "blocked_from": str(batch.state) if to is BatchState.BLOCKED else None,
        "blocked_by": blocked_by,
        "ends": to in TERMINAL_BATCH_STATES,
    }
    with refusals(), conn.cursor(row_factory=class_row(Batch)) as cursor:
        row = cursor.execute(sql.text("batch/move"), values).fetchone()
    if row is None:
        raise IllegalTransition(
            f"Batch {batch.batch_id} is no longer {batch.state}.", "Read the state again and start over from it."
        )
    return row


def cancel(conn: Connection, batch_id: int, reason: str) -> Batch:
    """Cancel: raises the generation and ends the batch and its open shards in one exclusive transaction, so that no
    writer of the old generation can commit afterwards. A batch that ended already is returned as it is."""
    conn.execute("select nightmill.fence_exclusive(%s)", (batch_id,))
    batch = get(conn, batch_id)
    if batch.ended:
        return batch
    conn.execute(sql.text("batch/raise_generation"), {"batch_id": batch_id})
    conn.execute(sql.text("shard/cancel"), {"batch_id": batch_id, "reason": reason})
    return move(conn, get(conn, batch_id), BatchState.CANCELLED, reason)


def explain(conn: Connection, batch: Batch, reason: str, *, blocked_by: str | None = None) -> None:
    """Say why the batch stays in the state that the caller saw; nothing where it has moved on. `blocked_by` is the
    stage whose task a person must clear before it goes on, None where it goes on by itself."""
    fence.enter(conn, batch.holder)
    values = {
        "batch_id": batch.batch_id,
        "state": str(batch.state),
        "generation": batch.generation,
        "reason": reason,
        "blocked_by": blocked_by,
    }
    conn.execute(sql.text("batch/explain"), values)


def record_manifest(conn: Connection, batch: Batch, facts: dict[str, Any]) -> None:
    """Store what was frozen; call before the edge to PLANNING, in the same transaction."""
    values = {**facts, "source_parameters": Jsonb(facts["source_parameters"]), "batch_id": batch.batch_id}
    conn.execute(sql.text("batch/record_manifest"), values)


def record_estimate(conn: Connection, batch: Batch, estimate: dict[str, Any]) -> None:
    """Store what preflight worked out."""
    conn.execute(sql.text("batch/record_estimate"), {"batch_id": batch.batch_id, "estimate": Jsonb(estimate)})


def record_counts(conn: Connection, batch: Batch, counts: dict[str, int]) -> None:
    """Store the reconciled number of items per bucket."""
    conn.execute(sql.text("batch/record_counts"), {"batch_id": batch.batch_id, "counts": Jsonb(counts)})


def bucket_counts(conn: Connection, batch_id: int) -> dict[str, int]:
    """Items per bucket, unsettled ones included as `unsettled`; only buckets that hold items."""
    rows = conn.execute(sql.text("outcome/count_by_bucket"), {"batch_id": batch_id}).fetchall()
    return {bucket: count for bucket, count in rows if count}


def gaps_by_code(conn: Connection, batch_id: int) -> list[tuple[str, int]]:
    """Items without an accepted answer per `bucket/class/code`, the most frequent first; excluded ones left out."""
    return conn.execute(sql.text("gap/count_by_code"), {"batch_id": batch_id}).fetchall()


def unblock(conn: Connection, batch: Batch, stage: str, why: str = "") -> Batch:
    """Let a batch go on that this stage had blocked: its task was cleared, or `why`. Others stay as they are."""
    if batch.state is not BatchState.BLOCKED or batch.blocked_from is None or batch.blocked_by != stage:
        return batch
    return move(conn, batch, BatchState(batch.blocked_from), why or f"{stage} was cleared")


def block(conn: Connection, batch: Batch, stage: str, reason: str) -> Batch:
    """Make a batch wait for a person; clearing the stage's task lets it go on."""
    return move(conn, batch, BatchState.BLOCKED, reason, blocked_by=stage)


def take_up(conn: Connection, batch: Batch, publish: Publishing, run_id: str) -> None:
    """Note which run of nightmill_publish takes a preview up, or has given it up; in the transaction of its edge."""
    conn.execute(sql.text("batch/take_up"), {"batch_id": batch.batch_id, "publish": str(publish), "run_id": run_id})


def taken_up(conn: Connection, run_id: str) -> int | None:
    """The batch that a run of nightmill_publish has taken up and not ended."""
    row = conn.execute(sql.text("batch/taken_up"), {"run_id": run_id}).fetchone()
    return row[0] if row else None


def jobs(conn: Connection) -> set[str]:
    """The jobs that have a batch."""
    return {row[0] for row in conn.execute(sql.text("batch/list_jobs"))}


def open_or_newest(conn: Connection) -> list[Batch]:
    """Every open batch and the newest closed one of each job, by job name."""
    with conn.cursor(row_factory=class_row(Batch)) as cursor:
        return cursor.execute(sql.text("batch/open_or_newest")).fetchall()


def newest_settled(conn: Connection, job: str) -> int | None:
    """The newest batch of a job that ended with a manifest; dry runs do not count."""
    row = conn.execute(sql.text("batch/newest_settled"), {"job": job}).fetchone()
    return row[0] if row else None

"""Replay, set by set: a child batch takes over its parent's manifest, payload, outcomes and rows, all but what is sent
again.

What is sent again stands in a temporary table of the session from `choose` on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql as composed
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from nightmill.domain.errors import Terminal
from nightmill.domain.keys import KeyMaker
from nightmill.domain.outcomes import NeverSent
from nightmill.domain.states import BatchState
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.rules.dead_letters import DeadLetterFilter
from nightmill.storage import partitions, payloads, sql, views
from nightmill.storage.batches import Batch
from nightmill.storage.payloads import PayloadStore
from nightmill.storage.session import Connection

# The parent's partitions are joined with what is sent again: hashing must not spill (default: 4 MB).
_ROOM_TO_JOIN = "set local work_mem = '64MB'"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is sent again: dead letters and items in review by (class, code), and what the parent left unsettled."""

    dead_letters: dict[tuple[str, str], int]
    in_review: dict[tuple[str, str], int]
    unsettled: int

    @property
    def items(self) -> int:
        """All of them."""
        return self.unsettled + sum(self.dead_letters.values()) + sum(self.in_review.values())


@dataclass(frozen=True, slots=True)
class Child:
    """What a run that replays a batch asks for."""

    dag_id: str
    run_id: str
    contract_id: int
    parent_id: int
    dry_run: bool
    params: dict[str, Any]
    note: str | None
    requested_by: str | None
    max_tries: int = 0


@dataclass(frozen=True, slots=True)
class Tables:
    """The child's tables while they are filled beside their parents."""

    items: composed.Identifier
    outcomes: composed.Identifier
    rows: composed.Identifier


def hold(conn: Connection, parent_id: int) -> None:
    """Keep others from replaying a batch, and from deleting it, until the caller's transaction ends."""
    conn.execute("select nightmill.fence_exclusive(%s)", (parent_id,))


def child_of(conn: Connection, parent_id: int) -> int | None:
    """The batch that replays this one; one that came to nothing does not count. The answer holds until the caller's
    transaction ends."""
    hold(conn, parent_id)
    row = conn.execute(sql.text("replay/child"), {"parent_id": parent_id}).fetchone()
    return row[0] if row else None


def create(conn: Connection, child: Child) -> Batch:
    """A new batch in CREATED over its parent's data interval and payload."""
    values = {name: getattr(child, name) for name in child.__slots__} | {"params": Jsonb(child.params)}
    with conn.cursor(row_factory=class_row(Batch)) as cursor:
        row = cursor.execute(sql.text("replay/create"), values).fetchone()
    assert row is not None
    return row


def choose(conn: Connection, parent: Batch, choice: DeadLetterFilter) -> Chosen:
    """Work out what is sent again: the dead letters and items in review that match, and whatever a cancel left
    unsettled."""
    values = {"parent_id": parent.batch_id, **choice.conditions}
    matches = sql.text("dead_letter/matches")
    conn.execute(sql.text("replay/make_sent_again"))
    conn.execute("truncate pg_temp.sent_again")
    conn.execute(_ROOM_TO_JOIN)
    conn.execute(sql.text("replay/choose").format(matches=matches), values)
    if parent.state is BatchState.CANCELLED:  # every other end was reconciled
        conn.execute(sql.text("replay/choose_unsettled"), values)
    conn.execute("analyze pg_temp.sent_again")
    counts: dict[str | None, dict[tuple[str, str], int]] = defaultdict(dict)
    for ended_as, kind, code, items in conn.execute(sql.text("replay/chosen"), values):
        counts[ended_as][kind, code] = items
    return Chosen(counts["dead_lettered"], counts["in_review"], sum(counts[None].values()))


def outdated(conn: Connection, parent_id: int, validators_hash: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """(ordinal, answer) of the parent's accepted answers that passed other rules than today's, in order, streamed."""
    with conn.cursor(name="outdated") as cursor:
        cursor.execute(sql.text("replay/outdated"), {"parent_id": parent_id, "validators_hash": validators_hash})
        yield from cursor


def send_too(conn: Connection, ordinals: Iterable[int]) -> None:
    """Add items to what is sent again."""
    conn.execute("insert into pg_temp.sent_again (ordinal) select unnest(%s::int8[])", (list(ordinals),))


def payload_of_sent(
    conn: Connection, store: PayloadStore, parent_id: int
) -> Iterator[tuple[list[int], Iterator[dict[str, Any]]]]:
    """Ordinals and payloads of what is sent again, by payload object; others are not read."""
    documents = payloads.Documents(conn, store, parent_id)
    for (ordinals,) in conn.execute(sql.text("replay/stretches"), {"parent_id": parent_id}).fetchall():
        yield ordinals, map(documents.of, ordinals)


def measured(conn: Connection, ordinals: Sequence[int], sizes: Sequence[tuple[int, NeverSent | None]]) -> None:
    """Note prompt tokens, and why an item is never sent, under the child's contract."""
    reasons = [never or (None, None, None) for _, never in sizes]
    values = {
        "ordinals": list(ordinals),
        "tokens": [tokens for tokens, _ in sizes],
        "skip_reasons": [code for code, _, _ in reasons],
        "skip_classes": [kind for _, kind, _ in reasons],
        "skip_messages": [message for _, _, message in reasons],
    }
    conn.execute(sql.text("replay/note_measured"), values)


def fill(conn: Connection, child_id: int, parent_id: int, pinned: JobDefinition, tables: Tables) -> None:
    """Copy the parent's manifest; what is sent again gets the key of the child's contract, all else is settled as it
    was in the parent. Nothing of it is visible yet."""
    values: dict[str, Any] = {"batch_id": child_id, "parent_id": parent_id, **KeyMaker(pinned.versions).frame}
    conn.execute(_ROOM_TO_JOIN)
    conn.execute(sql.text("replay/copy_items").format(items=tables.items), values)
    if not partitions.attached(conn, "outcome", parent_id):  # cancelled before it was planned
        return
    conn.execute(sql.text("replay/copy_outcomes").format(outcomes=tables.outcomes), values)
    columns = views.existing_columns(conn, pinned.job.publish.view)  # also such as this contract does not have
    parts = {"names": sql.names(columns), "typed": sql.typed(columns, "carried")}
    view = pinned.job.publish.view
    query = sql.text("replay/copy_rows").format(rows=tables.rows, parent_rows=sql.rows_table(view), **parts)
    copied = conn.execute(query, values | {"parent_part": partitions.holding(conn, f"rows_{view}", parent_id)}).rowcount
    accepted = conn.execute(sql.text("replay/count_answers").format(outcomes=tables.outcomes)).fetchone()
    assert accepted is not None
    if copied < accepted[0]:
        raise Terminal(
            f"Batch {parent_id} has {accepted[0]} accepted answers to carry on, and {copied} of its rows are left: "
            "maintenance took the others away, because newer batches are shown.",
            "Trigger a new run: it reuses every accepted answer that the source still asks for.",
        )


def record_manifest(conn: Connection, child_id: int, parent_id: int, items: composed.Identifier) -> None:
    """Store what the child took over, its parent's time of freezing included: it is not newer than its parent.

    Call before the edge to PLANNING, in the same transaction.
    """
    values = {"batch_id": child_id, "parent_id": parent_id}
    conn.execute(sql.text("replay/copy_dead_letters"), values)
    conn.execute(sql.text("replay/record_manifest").format(items=items), values)

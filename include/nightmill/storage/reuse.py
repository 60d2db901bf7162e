"""Settling items without a call: results that exist under the same key, items that are never sent, and items whose
key gave up for good before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from psycopg import sql as composed
from psycopg.rows import class_row

from nightmill.domain.outcomes import CitedSpan
from nightmill.storage import sql
from nightmill.storage.session import Connection, refusals
from nightmill.storage.settlement import Settling

# A batch joins its own items with the results of all batches: hashing them must not spill (default: 4 MB).
_ROOM_TO_JOIN = "set local work_mem = '64MB'"


def prepare(conn: Connection) -> None:
    """Make the session's temporary tables; once per connection."""
    conn.execute(sql.text("reuse/make_reusable"))
    conn.execute(sql.text("result/make_renewed"))


def find(conn: Connection, batch_id: int, validators_hash: str) -> int:
    """Collect the unsettled items of a batch that have an effective result; returns how many.

    One join over this batch's partition; nothing is written to the ledger.
    """
    return _collect(conn, sql.text("reuse/find"), {"batch_id": batch_id, "validators_hash": validators_hash})


def find_among(conn: Connection, batch_id: int, ordinals: Iterable[int], validators_hash: str) -> int:
    """Collect those of some unsettled items that have an effective result; returns how many."""
    listed = "{" + ",".join(map(str, ordinals)) + "}"
    values = {"batch_id": batch_id, "ordinals": listed, "validators_hash": validators_hash}
    conn.execute(sql.BY_INDEX)  # there are more results with each night
    return _collect(conn, sql.text("reuse/find_among"), values)


def _collect(conn: Connection, query: composed.SQL, values: dict[str, Any]) -> int:
    conn.execute(_ROOM_TO_JOIN)
    conn.execute("truncate pg_temp.reusable")
    found = conn.execute(query, values).rowcount
    if found:
        conn.execute("analyze pg_temp.reusable (ordinal, result_id)")  # else the planner guesses a few and loops
    return found


def outdated(conn: Connection) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """(ordinal, result id, answer) of those collected whose answer passed other rules than today's, streamed."""
    with conn.cursor(name="outdated") as cursor:
        cursor.execute(sql.text("reuse/outdated"))
        yield from cursor


def collected(conn: Connection) -> list[int]:
    """The ordinals collected so far."""
    return [row[0] for row in conn.execute("select ordinal from pg_temp.reusable").fetchall()]


def reject(conn: Connection, ordinals: Sequence[int]) -> None:
    """Take items out of the collection: their stored answer does not pass today's rules."""
    if ordinals:  # the collection has no index: even nothing is looked for in all of it
        conn.execute(sql.text("reuse/reject"), {"ordinals": ordinals})


def note_passed(conn: Connection, passed: Mapping[int, Sequence[CitedSpan]]) -> None:
    """Collect results whose answers pass today's rules, with the places of their quotations, for `renew`."""
    if passed:
        citations = [orjson.dumps(spans).decode() for spans in passed.values()]
        conn.execute(sql.text("result/note_renewed"), {"ids": list(passed), "citations": citations})


def renew(conn: Connection, validators_hash: str) -> int:
    """Write down that the collected results pass today's rules, and where their quotations stand. How many they are."""
    return conn.execute(sql.text("result/renew"), {"validators_hash": validators_hash}).rowcount


@dataclass(frozen=True, slots=True)
class Partitions:
    """Tables of one batch that are not attached yet, to be filled beside their parents."""

    outcomes: composed.Identifier
    rows: composed.Identifier


def settle(
    conn: Connection,
    batch_id: int,
    first: int,
    last: int,
    settling: Settling,
    unattached: Partitions | None = None,
    shown_id: int | None = None,
) -> int:
    """Settle the collected items of a range as reused, staging rows included; returns how many. What goes to tables
    beside their parents needs `record_usage` when they are attached.

    Rows that batch `shown_id` has already are copied, at half the cost of making them from their answers anew.
    """
    values = {"batch_id": batch_id, "first": first, "last": last, "shown_id": shown_id}
    parts = settling.parts
    parts |= {"all_rows": parts["rows"], "as_shown": sql.typed(settling.columns, "shown")}
    outcomes: composed.Composable = composed.SQL("nightmill.outcome")
    if unattached is not None:
        outcomes, parts["rows"] = unattached.outcomes, unattached.rows
    conn.execute(_ROOM_TO_JOIN)
    with refusals():
        settled = conn.execute(sql.text("reuse/add_outcomes").format(outcomes=outcomes), values).rowcount
        copied = 0
        if shown_id is not None:
            copied = conn.execute(sql.text("reuse/copy_rows").format(**parts), values).rowcount
        if copied < settled:
            conn.execute(sql.text("reuse/add_rows").format(**parts), values)
    if unattached is None:
        record_usage(conn, batch_id, first, last)
    return settled


def record_usage(conn: Connection, batch_id: int, first: int, last: int) -> None:
    """Note what the collected answers of a range had used. Once, in the transaction that shows their items settled."""
    conn.execute(sql.text("reuse/record_usage"), {"batch_id": batch_id, "first": first, "last": last})


def settle_skipped(conn: Connection, batch_id: int) -> int:
    """Settle the items that the freeze marked as never to be sent; returns how many."""
    with refusals():
        return conn.execute(sql.text("outcome/settle_skipped"), {"batch_id": batch_id}).rowcount


def settle_given_up(conn: Connection, batch_id: int, validators_hash: str, judged_anew: Sequence[str]) -> int:
    """Copy what became of keys that gave up for good, or wait in review, under the same contract and rules; returns how
    many. `judged_anew`: the reasons (`class/code`) that each freeze judges for itself."""
    with refusals():
        values = {"batch_id": batch_id, "validators_hash": validators_hash, "judged_anew": list(judged_anew)}
        return conn.execute(sql.text("outcome/settle_given_up"), values).rowcount


@dataclass(frozen=True, slots=True)
class SettledKey:
    """A key that needs no call: it has an accepted result, gave up for good, or waits in review. `outdated` results
    passed other rules than today's and are checked again before they are reused; `content_hash` is of the document that
    a result answers."""

    key: bytes
    reused: bool
    content_hash: bytes | None
    outdated: bool


def settled_keys(
    conn: Connection, keys: Sequence[bytes], validators_hash: str, judged_anew: Sequence[str]
) -> list[SettledKey]:
    """Those of the keys that plan_shards would settle without a call; a look-up by index, nothing is written."""
    with conn.cursor(row_factory=class_row(SettledKey)) as cursor:
        values = {"keys": list(keys), "validators_hash": validators_hash, "judged_anew": list(judged_anew)}
        return cursor.execute(sql.text("item/keys_settled"), values).fetchall()

"""What decides whether requests may leave: what others carry already, how much the account has waiting, and the intent
to send, which is committed before anything goes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row
from psycopg.types.multirange import Int8Multirange

from nightmill.storage import fence, sql
from nightmill.storage.provider_batches import ProviderBatch, returning
from nightmill.storage.ranges import multirange
from nightmill.storage.session import Connection, refusals

CANCELLED_WAIT_S = 2 * 3600.0  # a new run waits this long for the work that a cancelled one has at the provider


@dataclass(frozen=True, slots=True)
class Intent:
    """What is about to be sent, by which adapter. `account` is the connection's fingerprint; `enqueued_cap` is in
    prompt tokens."""

    job: str
    token: str
    account: str
    adapter: str
    model: str
    ordinals: Sequence[int]
    prompt_tokens: int
    file_bytes: int
    enqueued_cap: int | None


def carried_elsewhere(conn: Connection, batch_id: int, job: str, ordinals: Int8Multirange) -> set[int]:
    """Those of the ordinals whose key a live provider batch of another batch of the job carries, open or cancelled."""
    scope = {"batch_id": batch_id, "job": job, "cancelled_wait_s": CANCELLED_WAIT_S}
    others = conn.execute(sql.text("batch/in_flight"), scope).fetchall()
    found: set[int] = set()
    for other, carried in others:  # one query each: with constants it reads two partitions, nearly always none
        values = {"batch_id": batch_id, "ordinals": ordinals, "other": other, "carried": carried}
        found.update(row[0] for row in conn.execute(sql.text("item/keys_in_flight"), values))
    return found


def lock_sending(conn: Connection, job: str, account: str) -> None:
    """Serialise intents of one job and of one account, and what is learnt of its limits, until the transaction ends."""
    conn.execute(sql.text("fence/lock_sending"), {"job": job, "account": account})


def enqueued_tokens(conn: Connection, account: str, model: str) -> int:
    """Prompt tokens of all live provider batches of a model on an account, those of cancelled batches included."""
    values = {"account": account, "model": model}
    row = conn.execute(sql.text("provider_batch/enqueued_tokens"), values).fetchone()
    return int(row[0]) if row else 0


def intend(conn: Connection, holder: fence.Holder, intent: Intent) -> ProviderBatch | None:
    """Record the intent to send, or return None when the account's enqueued-token budget has no room now.

    A file that is larger than the whole budget is let through alone: the provider says what it thinks of it.
    """
    fence.enter(conn, holder)
    lock_sending(conn, intent.job, intent.account)
    if intent.enqueued_cap is not None:
        waiting = enqueued_tokens(conn, intent.account, intent.model)
        if waiting and waiting + intent.prompt_tokens > intent.enqueued_cap:
            return None
    values = {
        "batch_id": holder.batch_id,
        "shard_id": holder.shard_id,
        "job": intent.job,
        "token": intent.token,
        "account": intent.account,
        "adapter": intent.adapter,
        "model": intent.model,
        "ordinals": multirange(intent.ordinals),
        "requests": len(intent.ordinals),
        "prompt_tokens": intent.prompt_tokens,
        "file_bytes": intent.file_bytes,
    }
    with refusals(), conn.cursor(row_factory=class_row(ProviderBatch)) as cursor:
        row = cursor.execute(returning("provider_batch/intend"), values).fetchone()
    assert row is not None
    return row


def ids_made_since(conn: Connection, account: str, since: datetime) -> frozenset[str]:
    """The provider's ids of an account's batches whose create calls went out since then."""
    values = {"account": account, "since": since}
    return frozenset(row[0] for row in conn.execute(sql.text("provider_batch/ids_made_since"), values))

"""Batches at a provider that carry a token of this ledger and that no provider batch follows: given up, or made twice.
They cost money all the same, so what they used is booked once they have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg.rows import class_row

from nightmill.storage import sql
from nightmill.storage.session import Connection


@dataclass(frozen=True, slots=True)
class Stray:
    """One of them. `batch_id` is the batch whose requests it holds."""

    provider_id: str
    provider_batch_id: int
    batch_id: int
    raw_status: str


@dataclass(frozen=True, slots=True)
class Used:
    """What a stray was paid for. Tokens are None where nobody tells."""

    answers: int
    prompt_tokens: int | None
    cache_read_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True, slots=True)
class Booked:
    """What the strays of a batch were paid for, together."""

    batches: int
    answers: int
    prompt: int
    completion: int
    cached: int


def add(conn: Connection, account: str, provider_id: str, token: str, raw_status: str) -> None:
    """Note that there is one; nothing where it is known."""
    values = {"account": account, "provider_id": provider_id, "token": token, "raw_status": raw_status}
    conn.execute(sql.text("provider_batch/add_stray"), values)


def to_book(conn: Connection, account: str) -> list[Stray]:
    """Those of an account whose end was not seen so far."""
    with conn.cursor(row_factory=class_row(Stray)) as cursor:
        return cursor.execute(sql.text("provider_batch/open_strays"), {"account": account}).fetchall()


def booked_ids(conn: Connection, account: str, provider_ids: Sequence[str]) -> set[str]:
    """Those of these that are booked."""
    values = {"account": account, "provider_ids": list(provider_ids)}
    return {row[0] for row in conn.execute(sql.text("provider_batch/known_strays"), values)}


def book(conn: Connection, account: str, provider_id: str, raw_status: str, used: Used) -> None:
    """Note what it was paid for."""
    values = {
        "account": account,
        "provider_id": provider_id,
        "raw_status": raw_status,
        "answers": used.answers,
        "prompt_tokens": used.prompt_tokens,
        "cache_read_tokens": used.cache_read_tokens,
        "output_tokens": used.output_tokens,
    }
    conn.execute(sql.text("provider_batch/book_stray"), values)


def of_batch(conn: Connection, batch_id: int) -> Booked:
    """What was booked beside a batch's own provider batches."""
    with conn.cursor(row_factory=class_row(Booked)) as cursor:
        row = cursor.execute(sql.text("provider_batch/strays_of_batch"), {"batch_id": batch_id}).fetchone()
    assert row is not None
    return row

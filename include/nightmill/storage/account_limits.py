"""What accounts were seen to take: kept for all runs, because a limit that one of them met holds for the others too."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from psycopg.rows import class_row, dict_row

from nightmill.domain.limits import ALERT_AFTER, Limit, Standing
from nightmill.storage import sql
from nightmill.storage.session import Connection


@dataclass(frozen=True, slots=True)
class Stuck:
    """An account that took no file of a model since then."""

    account: str
    model: str
    refusals: int
    refused_as: str
    refused_since: datetime

    def __str__(self) -> str:
        what = {"queue": "its queue is full", "rate": "it asks to slow down", "size": "files are too large for it"}
        return (
            f"the provider has taken no file for {self.model} since {self.refused_since:%Y-%m-%d %H:%M} UTC: "
            f"{what[self.refused_as]}; one probe goes out at a time"
        )


def get(conn: Connection, account: str, model: str) -> Standing:
    """What is known of an account and a model; a blank one where nothing is."""
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(sql.text("account_limit/get"), {"account": account, "model": model}).fetchone()
    if row is None:
        return Standing()
    return Standing(**row | {"refused_as": Limit(row["refused_as"]) if row["refused_as"] else None})


def put(conn: Connection, account: str, model: str, standing: Standing) -> None:
    """Keep what was learnt. The caller holds the account's lock (`sending.lock_sending`)."""
    values = asdict(standing) | {"refused_as": str(standing.refused_as) if standing.refused_as else None}
    conn.execute(sql.text("account_limit/set"), values | {"account": account, "model": model})


def probing(conn: Connection, account: str) -> int | None:
    """The provider batch that an account is being probed with, for whatever model."""
    row = conn.execute(sql.text("account_limit/probing"), {"account": account}).fetchone()
    return row[0] if row else None


def under_way(conn: Connection, account: str, model: str, *, but: int = 0) -> tuple[int, int]:
    """Prompt tokens that the provider has taken and not ended, leaving out one provider batch; and the newest one."""
    values = {"account": account, "model": model, "but": but}
    row = conn.execute(sql.text("account_limit/under_way"), values).fetchone()
    assert row is not None
    return int(row[0]), int(row[1] or 0)


def stuck(
    conn: Connection,
    now: datetime,
    *,
    account: str | None = None,
    model: str | None = None,
    batch_id: int | None = None,
) -> list[Stuck]:
    """Accounts for which a person should look: nothing was taken for half an hour."""
    values = {"before": now - ALERT_AFTER, "account": account, "model": model, "batch_id": batch_id}
    with conn.cursor(row_factory=class_row(Stuck)) as cursor:
        return cursor.execute(sql.text("account_limit/stuck"), values).fetchall()

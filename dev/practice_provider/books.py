"""The books: what was executed and therefore paid, and which calls came in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from dev.practice_provider.ledger import Ledger

RECORD = (
    "insert into execution (batch_id, custom_id, endpoint, model, body_sha256, status, prompt_tokens,"
    " completion_tokens, at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
Execution = tuple[str | None, str, str, str, str, int, int, int, float]


def body_sha256(body: Mapping[str, Any]) -> str:
    """Names what was asked, whatever the custom_id: sha256 of the messages (or the input) as compact UTF-8 JSON with
    sorted keys."""
    asked = body.get("messages", body.get("input"))
    return hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest()


def first_turn_sha256(body: Mapping[str, Any], whole: str) -> str:
    """Names what was asked first: `whole`, the sha256 of the body, unless the conversation goes on after an answer.

    So a fault that struck a request knows it again when its rejected answer is asked to be mended.
    """
    messages = body.get("messages")
    if not isinstance(messages, list):
        return whole
    roles = [one.get("role") if isinstance(one, dict) else None for one in messages]
    if "assistant" not in roles:
        return whole
    return body_sha256({"messages": messages[: roles.index("assistant")]})


class Books:
    """Read side, and the two single writes (batches record their executions with their own progress).

    Only answered requests count as executed; a request that came back as an error cost nothing and is counted as
    `failed`. So a line that fails and is asked again is no duplicate.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def count_call(self, route: str) -> None:
        self._ledger.execute(
            "insert into call (route, n) values (?, 1) on conflict (route) do update set n = n + 1", (route,)
        )

    def record(self, execution: Execution) -> None:
        self._ledger.execute(RECORD, execution)

    def summary(self) -> dict[str, Any]:
        totals = self._ledger.row(
            "select coalesce(sum(status = 200), 0) as executed, coalesce(sum(status <> 200), 0) as failed,"
            " coalesce(sum(prompt_tokens), 0) as prompt_tokens,"
            " coalesce(sum(completion_tokens), 0) as completion_tokens from execution"
        )
        assert totals is not None
        calls = {row["route"]: row["n"] for row in self._ledger.rows("select route, n from call order by route")}
        return {
            "executed": totals["executed"],
            "failed": totals["failed"],
            "usage": {"prompt_tokens": totals["prompt_tokens"], "completion_tokens": totals["completion_tokens"]},
            "batches": [dict(row) for row in self._ledger.rows(_BATCHES)],
            "duplicates": self.duplicates(),
            "calls": calls,
        }

    def duplicates(self) -> list[dict[str, Any]]:
        """Bodies that were answered more than once, with the custom_ids under which that happened."""
        rows = self._ledger.rows(
            "select body_sha256, count(*) as n, json_group_array(custom_id) as custom_ids from execution"
            " where status = 200 group by body_sha256 having count(*) > 1"
        )
        return [
            {"body_sha256": row["body_sha256"], "count": row["n"], "custom_ids": orjson.loads(row["custom_ids"])}
            for row in rows
        ]

    def requests(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each custom_id with how often it was answered (`count`), failed, and its executions."""
        with self._ledger.reading("select * from execution order by custom_id, seq") as rows:
            current, executions = None, list[dict[str, Any]]()
            for row in rows:
                if row["custom_id"] != current:
                    if current is not None:
                        yield current, _entry(executions)
                    current, executions = row["custom_id"], []
                executions.append({key: row[key] for key in row.keys() if key not in ("seq", "custom_id")})  # noqa: SIM118
            if current is not None:
                yield current, _entry(executions)

    def as_json_pieces(self) -> Iterator[bytes]:
        """The whole books as JSON, piece by piece: requests can be hundreds of thousands."""
        yield orjson.dumps(self.summary())[:-1] + b',"requests":{'
        pieces: list[bytes] = []
        separator = b""
        for custom_id, entry in self.requests():
            pieces.append(separator + orjson.dumps(custom_id) + b":" + orjson.dumps(entry))
            separator = b","
            if len(pieces) == 500:
                yield b"".join(pieces)
                pieces.clear()
        yield b"".join(pieces) + b"}}"


_BATCHES = (
    "select id, status, input_file_id, endpoint, model, total, succeeded as executed, failed, input_tokens as"
    " prompt_tokens, output_tokens as completion_tokens, created_at from batch order by seq"
)


def _entry(executions: list[dict[str, Any]]) -> dict[str, Any]:
    answered = sum(execution["status"] == 200 for execution in executions)
    return {"count": answered, "failed": len(executions) - answered, "executions": executions}

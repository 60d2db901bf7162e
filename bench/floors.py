"""The least that the same work could cost, on the same rows and in the same run."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import orjson
import psycopg

from bench.site import Site
from bench.stages import Work
from nightmill.simulator.tokens import counter


def count_tokens(site: Site) -> Work:
    """Read the texts and count their tokens with the reference tokenizer (bpe-openai), nothing else: the floor of
    freeze and plan. The package itself counts with a faster one."""
    count = counter("exact")
    return lambda: sum(map(count, _texts(site)))


def count_tokens_ourselves(site: Site) -> Work:
    """The same with the package's own counter: what of freeze is counting."""
    from nightmill.domain.tokens import TokenCounter

    count = TokenCounter(site.job.job.provider.model).count
    count("")  # its tables count as start-up
    return lambda: sum(map(count, _texts(site)))


def _texts(site: Site) -> Iterator[str]:
    with psycopg.connect(site.admin_dsn) as conn, conn.cursor("texts") as rows:
        rows.itersize = 2_000
        for (body,) in rows.execute("select body from documents"):
            yield body


def copy_out(site: Site) -> Work:
    """COPY the rows out and write them as request lines: the floor of submit."""

    def work() -> int:
        size = 0
        query = "copy (select id, body from documents) to stdout"
        with (
            psycopg.connect(site.admin_dsn) as conn,
            conn.cursor().copy(query) as copy,
            (site.home / "floor.jsonl").open("wb") as file,
        ):
            for source_id, body in copy.rows():
                line = orjson.dumps(
                    {
                        "custom_id": source_id,
                        "method": "POST",
                        "url": "/v1/chat/completions",
                        "body": {"model": "echo-1", "messages": [{"role": "user", "content": body}]},
                    }
                )
                file.write(line + b"\n")
                size += len(line)
        return size

    return work


class _Body(msgspec.Struct):
    model: str


class _Response(msgspec.Struct):
    status_code: int
    body: msgspec.Raw


class _Line(msgspec.Struct):
    custom_id: str
    response: _Response


class _Answer(msgspec.Struct):
    title: str
    topic: str
    pages: int


def copy_in(site: Site) -> Work:
    """Parse result lines and COPY what they say into tables with the same columns and indexes as the ledger's four
    (attempt, result, outcome, rows): the floor of collect."""
    lines = _result_lines(site)
    with psycopg.connect(site.admin_dsn) as conn:
        conn.execute("drop schema if exists floor cascade")
        conn.execute("create schema floor")
        for table in ("attempt", "result", "outcome", "rows_bench"):
            conn.execute(f"create table floor.{table} (like nightmill.{table} including all)")
        conn.execute("alter table floor.attempt add primary key (batch_id, ordinal, provider_batch_id)")
        conn.execute("alter table floor.outcome add primary key (batch_id, ordinal)")
        conn.execute("create unique index on floor.rows_bench (source_id)")

    def work() -> int:
        decoder, answer = msgspec.json.Decoder(_Line), msgspec.json.Decoder(_Answer)
        count = 0
        with psycopg.connect(site.admin_dsn) as conn:
            for table, columns, render in _TABLES:
                with conn.cursor().copy(f"copy floor.{table} ({columns}) from stdin") as copy:
                    for ordinal, raw in enumerate(lines):
                        line = decoder.decode(raw)
                        copy.write_row(render(ordinal, line.custom_id, answer.decode(_text(line))))
                        count += 1
        return count

    return work


def _text(line: _Line) -> str:
    return str(orjson.loads(bytes(line.response.body))["choices"][0]["message"]["content"])


def _result_lines(site: Site) -> list[bytes]:
    """Result lines like the provider's, of which the kept evidence has one file per provider batch."""
    content = '{"title":"the contract party shall provide","topic":"notice of termination","pages":0}'
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "echo-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 30, "total_tokens": 230},
    }
    with psycopg.connect(site.admin_dsn) as conn:
        row = conn.execute("select count(*) from documents").fetchone()
    assert row is not None
    return [
        orjson.dumps({"id": "r", "custom_id": f"{n:016x}-{n}", "response": {"status_code": 200, "body": body}})
        for n in range(min(int(row[0]), 100_000))
    ]


_TABLES = (
    (
        "attempt",
        "batch_id, ordinal, provider_batch_id, sent_upstream, prompt_tokens, completion_tokens, model",
        lambda n, key, answer: (1, n, 1, True, 200, 30, "echo-1"),
    ),
    (
        "result",
        "result_id, key, job, tenant, source_id, source_version, content_hash, answer, validators_hash, contract_id, "
        "prompt_version, model, batch_id",
        lambda n, key, answer: (
            n, key.encode(), "bench", "", key, "1", b"0" * 32, msgspec.json.encode(answer).decode(), "v", 1, "p",
            "echo-1", 1,
        ),
    ),
    ("outcome", "batch_id, ordinal, kind, result_id", lambda n, key, answer: (1, n, "accepted", n)),
    (
        "rows_bench",
        "batch_id, ordinal, source_id, source_version, tenant, domain, result_id, reused, model, prompt_version, "
        "answered_at, title, topic, pages",
        lambda n, key, answer: (
            1, n, key, "1", "", "", n, False, "echo-1", "p", "2026-01-01", answer.title, answer.topic, answer.pages,
        ),
    ),
)  # fmt: skip

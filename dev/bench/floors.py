"""The least that the same work could cost, on the same rows and in the same run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import orjson
import psycopg

from dev.bench.site import Site
from dev.bench.stages import Work
from dev.practice_provider.tokens import counter

if TYPE_CHECKING:
    from openai import OpenAI

MOST_LINES = 100_000  # that collecting's floor and the plain script go through
_LINES_PER_FILE = 25_000
_PROPERTIES = {"title": {"type": "string"}, "topic": {"type": "string"}, "pages": {"type": "integer"}}
_SCHEMA = {
    "type": "object",
    "properties": _PROPERTIES,
    "required": list(_PROPERTIES),
    "additionalProperties": False,
}
_FORMAT = {"type": "json_schema", "json_schema": {"name": "Output", "strict": True, "schema": _SCHEMA}}


def count_tokens(site: Site) -> Work:
    """Read the texts and count their tokens with the reference tokenizer (bpe-openai), nothing else: the floor of
    freeze and plan. The package itself counts with a faster one."""
    count = counter("exact")
    return lambda: sum(map(count, _texts(site)))


def count_tokens_ourselves(site: Site) -> Work:
    """The same with the package's own counter: what of freeze is counting."""
    from nightmill.jobs.tokens import TokenCounter

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
                line = _request_line(source_id, body)
                file.write(line)
                size += len(line)
        return size

    return work


def plain_script(site: Site) -> Work:
    """The same night as a script without any durability does it: read, send, wait, parse, COPY into one table. What all
    stages together are compared with."""
    from openai import OpenAI

    def work() -> int:
        count = 0
        with psycopg.connect(site.admin_dsn) as conn, OpenAI(base_url=site.base_url, api_key="bench") as client:
            conn.execute("drop table if exists script_results")
            conn.execute("create table script_results (id text primary key, title text, topic text, pages int)")
            with conn.cursor("texts") as rows:
                rows.execute("select id, body from documents limit %s", (MOST_LINES,))
                pages = iter(lambda: rows.fetchmany(_LINES_PER_FILE), [])
                sent = [_send(client, site.home / "script.jsonl", page) for page in pages]
            for batch_id in sent:
                while (batch := client.batches.retrieve(batch_id)).output_file_id is None:
                    time.sleep(0.5)
                with conn.cursor().copy("copy script_results from stdin") as copy:
                    for raw in client.files.content(batch.output_file_id).iter_lines():
                        line = orjson.loads(raw)
                        answer = orjson.loads(line["response"]["body"]["choices"][0]["message"]["content"])
                        copy.write_row((line["custom_id"], answer["title"], answer["topic"], answer["pages"]))
                        count += 1
        return count

    return work


def _send(client: OpenAI, path: Path, rows: list[tuple[str, str]]) -> str:
    """Write, upload and create one batch; returns its id."""
    with path.open("wb") as file:
        for source_id, body in rows:
            file.write(_request_line(source_id, body))
    uploaded = client.files.create(file=path, purpose="batch")
    batch = client.batches.create(input_file_id=uploaded.id, endpoint="/v1/chat/completions", completion_window="24h")
    return batch.id


def _request_line(source_id: str, body: str) -> bytes:
    message = {"role": "user", "content": f"Summarise this document.\n\n{body}"}
    request = {"model": "echo-1", "messages": [message], "max_completion_tokens": 400, "response_format": _FORMAT}
    line = {"custom_id": source_id, "method": "POST", "url": "/v1/chat/completions", "body": request}
    return orjson.dumps(line) + b"\n"


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
        for n in range(min(int(row[0]), MOST_LINES))
    ]


_TABLES = (
    (
        "attempt",
        "batch_id, ordinal, provider_batch_id, sent_upstream, uncached_tokens, output_tokens, model",
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
        "part_id, batch_id, ordinal, source_id, source_version, tenant, domain, result_id, reused, model, "
        "prompt_version, answered_at, title, topic, pages",
        lambda n, key, answer: (
            1, 1, n, key, "1", "", "", n, False, "echo-1", "p", "2026-01-01", answer.title, answer.topic, answer.pages,
        ),
    ),
)  # fmt: skip

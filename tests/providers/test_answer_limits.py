"""No answer is without an end: bytes, lines, time and what it unpacks to are bounded. Client and sockets are real."""

from __future__ import annotations

import asyncio
import gzip
import time
import tracemalloc
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from providers.openai_talk import ENDED, KEY, download, fault_from, lookup, talking_to
from providers.scripted_server import Request, ScriptedServer, answer, cut

from nightmill.domain.errors import AnswerTooLarge, NightmillError, ProviderRefused, ProviderUnavailable, SubmitUnknown
from nightmill.providers.connection import AnswerLimits, ProviderConnection
from nightmill.providers.http_guard import ERROR_BYTES
from nightmill.providers.openai.models import list_models
from nightmill.providers.openai.watch import OpenAIWatcher
from nightmill.providers.result_files import ends_complete, last_line

MIB = 1 << 20
NOW = datetime(2025, 3, 1, tzinfo=UTC)
SMALL = AnswerLimits(max_answer_bytes=MIB, max_result_bytes=4 * MIB, max_line_bytes=2 * MIB)
LINE = b'{"custom_id":"a"}\n'
OK_HEAD = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n"


def endless(piece: bytes, *headers: bytes, status: bytes = b"200 OK") -> Iterator[bytes]:
    """An answer that never ends by itself."""
    yield b"HTTP/1.1 " + status + b"\r\nconnection: close\r\n" + b"".join(one + b"\r\n" for one in headers) + b"\r\n"
    for _ in range(10_000):
        yield piece


@cache
def packed_zeros(kind: str, size: int) -> bytes:
    """`size` bytes that pack to a thousandth."""
    maker = zlib.compressobj(9, zlib.DEFLATED, 31 if kind == "gzip" else 15)
    return b"".join(maker.compress(b"0" * MIB) for _ in range(size // MIB)) + maker.flush()


def as_file(content: bytes | Iterable[bytes]) -> object:
    """A script that serves a file's content; its file object says nothing of its size."""
    return lambda request: content if request.target.endswith("/content") else answer({"id": "file-o"})


def test_a_json_answer_without_an_end_is_given_up_at_its_limit_and_the_message_says_how_to_raise_it() -> None:
    with talking_to(lambda request: endless(b" " * MIB), answers=SMALL, max_retries=2) as (provider, server):
        fault = fault_from(lambda: provider.poll("batch_1"), AnswerTooLarge)
        fault_from(lambda: lookup(provider, "f", "t", NOW), AnswerTooLarge)
        fault_from(lambda: provider.create("f", "t"), SubmitUnknown)
    assert "more than the 1,048,576 bytes of max_answer_bytes while polling batch batch_1" in fault.cause
    assert "put a larger max_answer_bytes into the connection's extra" in fault.remedy
    assert len(server.requests) == 3  # asking again would bring the same
    assert server.sent < 60 * MIB


def test_an_answer_that_announces_too_much_is_not_read_at_all() -> None:
    head = OK_HEAD + b"content-length: 99999999999999\r\n\r\n"
    with talking_to(lambda request: [head, b" " * MIB], answers=SMALL) as (provider, server):
        fault_from(lambda: provider.poll("batch_1"), AnswerTooLarge)
    assert server.sent <= len(head) + MIB


def test_the_body_of_an_error_is_read_to_its_first_part_only() -> None:
    for head in ((), (b"content-length: 99999999999",), (b"content-encoding: gzip",)):
        piece = packed_zeros("gzip", 64 * MIB) if b"gzip" in b"".join(head) else b"x" * ERROR_BYTES
        with talking_to(lambda request, h=head, p=piece: endless(p, *h, status=b"400 Bad")) as (provider, server):
            fault_from(lambda: provider.poll("batch_1"), ProviderRefused)
        assert server.sent < 20 * MIB


def test_an_error_in_an_encoding_that_nobody_asked_for_keeps_its_status() -> None:
    reply = answer(b"\x8b\x01\x80", "401 Who", content_encoding="br")
    with talking_to(lambda request: reply) as (provider, _):
        assert "key" in fault_from(lambda: provider.create("f", "t"), ProviderRefused).remedy


def test_the_list_of_models_and_the_triggerers_listing_have_the_same_limit() -> None:
    async def watch(base_url: str) -> None:
        watcher = OpenAIWatcher(ProviderConnection("llm_night", base_url, KEY, answers=SMALL))
        try:
            await watcher.statuses(["b"], NOW)
        finally:
            await watcher.close()

    bomb = answer(packed_zeros("gzip", 64 * MIB), content_encoding="gzip")
    for reply in (lambda: endless(b" " * MIB), lambda: bomb):
        with ScriptedServer(lambda request, reply=reply: reply()).running() as server:
            connection = ProviderConnection("llm_night", server.base_url, KEY, answers=SMALL)
            fault_from(lambda c=connection: list_models(c), AnswerTooLarge)
            fault_from(lambda s=server: asyncio.run(watch(s.base_url)), AnswerTooLarge)


@pytest.mark.parametrize("kind", ["gzip", "deflate", "gzip, gzip"])
def test_a_compressed_answer_that_unpacks_to_far_more_is_given_up_with_little_memory(kind: str, tmp_path: Path) -> None:
    bomb = packed_zeros(kind.split(",")[0], 96 * MIB)
    if "," in kind:
        bomb = gzip.compress(bomb)
    reply = answer(bomb, content_type="application/octet-stream", content_encoding=kind)
    limits = AnswerLimits(max_answer_bytes=512 * MIB, max_line_bytes=512 * MIB)
    tracemalloc.start()
    with talking_to(as_file(reply), answers=limits) as (provider, _):
        fault = fault_from(lambda: download(provider, "file-o", tmp_path / "out"), ProviderUnavailable)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "unpack to more than" in fault.cause
    assert peak < 16 * MIB
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["gzip", "deflate"])
def test_an_honest_compressed_answer_is_read_although_none_is_asked_for(kind: str, tmp_path: Path) -> None:
    packed = gzip.compress(LINE * 5000) if kind == "gzip" else zlib.compress(LINE * 5000)
    reply = answer(packed, content_type="application/octet-stream", content_encoding=kind)
    with talking_to(as_file(reply)) as (provider, server):
        assert download(provider, "file-o", tmp_path / "out") == len(LINE) * 5000
    assert {request.headers["accept-encoding"] for request in server.requests} == {"identity"}
    assert (tmp_path / "out").read_bytes() == LINE * 5000


@pytest.mark.parametrize("kind", ["br", "zstd", "x-odd", "gzip, br"])
def test_an_encoding_that_nobody_asked_for_never_passes_for_a_result_file(kind: str, tmp_path: Path) -> None:
    reply = answer(b"\x8b\x01\x80\n", content_type="application/octet-stream", content_encoding=kind)
    with talking_to(as_file(reply)) as (provider, _):
        fault = fault_from(lambda: download(provider, "file-o", tmp_path / "out"), ProviderUnavailable)
        fault_from(lambda: provider.create("f", "t"), NightmillError)
    assert "encoding" in fault.cause


def test_a_charset_of_the_servers_choice_unpacks_nothing() -> None:
    bomb = packed_zeros("deflate", 64 * MIB)
    reply = answer(bomb, "400 Bad", content_type="application/json; charset=zlib_codec")
    tracemalloc.start()
    with talking_to(lambda request: reply) as (provider, _):
        fault_from(lambda: provider.poll("batch_1"), ProviderRefused)
    assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    tracemalloc.stop()


def test_a_result_file_without_an_end_is_given_up_at_its_limit_and_fetched_once_that_is_raised(tmp_path: Path) -> None:
    def served(request: Request) -> bytes | Iterable[bytes]:
        return endless(LINE * 1000) if request.target.endswith("/content") else answer({"id": "f", "bytes": 10**15})

    with talking_to(served, answers=SMALL) as (provider, server):
        fault = fault_from(lambda: download(provider, "file-o", tmp_path / "out"), AnswerTooLarge)
    assert "4,194,304 bytes of max_result_bytes while downloading file file-o" in fault.cause
    assert server.paths().count("GET /v1/files/file-o/content") == 1
    assert list(tmp_path.iterdir()) == []
    large = answer(LINE * (5 * MIB // len(LINE)), content_type="application/octet-stream")
    with talking_to(as_file(large), answers=SMALL) as (provider, _):
        fault_from(lambda: download(provider, "file-o", tmp_path / "out"), AnswerTooLarge)
    with talking_to(as_file(large)) as (provider, _):
        assert download(provider, "file-o", tmp_path / "out") > 4 * MIB


@pytest.mark.parametrize("lines", [b"", LINE])
def test_a_line_without_an_end_is_given_up_at_its_limit_with_little_memory(lines: bytes, tmp_path: Path) -> None:
    long_line = cut(lines + b'{"custom_id":"b","x":"' + b"x" * (3 * MIB) + b'"}' + lines, None)
    with talking_to(as_file(long_line), answers=SMALL) as (provider, _):
        fault = fault_from(lambda: download(provider, "file-o", tmp_path / "out"), AnswerTooLarge)
    assert "2,097,152 bytes of max_line_bytes" in fault.cause
    with talking_to(as_file(long_line)) as (provider, _):
        download(provider, "file-o", tmp_path / "out")


def test_an_answer_that_drips_is_given_up_although_no_wait_for_bytes_is_long(tmp_path: Path) -> None:
    def drip(kind: bytes) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: " + kind + b"\r\n\r\n"
        while True:
            time.sleep(0.05)
            yield b" "

    script = as_file(drip(b"application/octet-stream"))
    with talking_to(script, timeout_s=0.3) as (provider, server):
        started = time.monotonic()
        fault = fault_from(lambda: download(provider, "file-o", tmp_path / "out"), ProviderUnavailable)
        assert "too slow" in fault.cause
        assert server.paths().count("GET /v1/files/file-o/content") == 1
    with talking_to(lambda request: drip(b"application/json"), timeout_s=0.3) as (provider, _):
        fault_from(lambda: provider.poll("batch_1"), ProviderUnavailable)
    assert time.monotonic() - started < 30  # each drips for ever


def test_a_compressed_answer_of_nothing_but_empty_blocks_ends_too(tmp_path: Path) -> None:
    def blocks() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: deflate\r\n\r\n"
        while True:
            time.sleep(0.05)
            yield b"\x00\x00\x00\xff\xff" * 10

    with talking_to(as_file(blocks()), timeout_s=0.3) as (provider, _):
        fault_from(lambda: download(provider, "file-o", tmp_path / "out"), ProviderUnavailable)


@pytest.mark.parametrize("stated", [10**30, float("nan"), -5, True, "12", [1], {"a": 1}, 2**62])
def test_a_size_in_the_file_object_that_cannot_be_is_not_believed(stated: object, tmp_path: Path) -> None:
    def served(request: Request) -> bytes:
        return cut(LINE, None) if request.target.endswith("/content") else answer({"id": "f", "bytes": stated})

    with talking_to(served) as (provider, _):
        assert download(provider, "file-o", tmp_path / "out") == len(LINE)


@pytest.mark.parametrize(
    "last",
    [b'{"a": NaN}', b'{"a": ' + b"9" * 5000 + b"}", b'{"a": "\xff"}', b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}"],
)
def test_an_odd_last_line_without_a_newline_is_whole(last: bytes, tmp_path: Path) -> None:
    with talking_to(as_file(cut(LINE + last, None))) as (provider, _):
        assert download(provider, "file-o", tmp_path / "out") == len(LINE + last)


def test_a_last_line_of_100_mb_without_a_newline_is_read_in_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.write(b"{}\n")
        file.truncate(100_000_000)  # one line of NULs
    started = time.process_time()
    assert len(last_line(path)) == 100_000_000 - 3
    assert time.process_time() - started < 5
    path.write_bytes(b"{}\n" + b"x" * 20_000_000)
    assert ends_complete(path) is False


def test_an_honest_answer_is_still_read() -> None:
    with talking_to(lambda request: answer(ENDED)) as (provider, _):
        assert provider.poll("batch_1").provider_id == "batch_1"

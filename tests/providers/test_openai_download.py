"""A cut or foreign download never passes for a result file. The client and sockets are real."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from providers.openai_talk import HTML, download, fault_from, talking_to
from providers.scripted_server import Request, answer, cut, error

from nightmill.domain.errors import ProviderUnavailable
from nightmill.providers.openai.download import FileDownload


def test_c107_a_page_of_a_proxy_is_not_a_result_file(tmp_path):
    for page in (HTML, cut(b"  <!DOCTYPE html>\n", None)):
        with talking_to(lambda request, page=page: page) as (provider, _):
            fault_from(lambda: download(provider, "file-o", tmp_path / "out"), ProviderUnavailable)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b'{"error":{"message":"No such file","type":"invalid_request_error","code":null}}',
        b'{\n  "error": {\n    "message": "The server is busy"\n  }\n}\n',
        b'{"detail":"Internal Server Error"}\n',
        b'\xef\xbb\xbf{"object":"error","message":"x","custom_id":null}\n',
        b'["not", "lines"]\n',
        b"null\n",
        b"{}",
        b"upstream connect error or disconnect/reset before headers\n",
        b'"Internal Server Error"\n',
    ],
)
@pytest.mark.parametrize("content_type", ["application/json", "application/octet-stream"])
def test_a_json_error_in_place_of_a_result_file_is_not_a_result_file(content, content_type, tmp_path):
    with talking_to(serving([answer(content, content_type=content_type)])) as (provider, _):
        fault = fault_from(lambda: download(provider, "file-o", tmp_path / "out"), ProviderUnavailable)
    assert "no result lines" in fault.cause
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b'{"custom_id":"a","error":{"message":"No such file"}}',
        b'{"error":1}\n{"error":2}\n',
        b'garbage\n{"custom_id":"a"}\n',
        b'{"custom_id":"a","resp\n',
        b"\n\n",
    ],
)
def test_a_file_of_lines_is_a_result_file_however_odd_its_lines_are(content, tmp_path):
    with talking_to(serving([answer(content, content_type="application/octet-stream")])) as (provider, _):
        assert download(provider, "file-o", tmp_path / "out") == len(content)


LINES = b'{"custom_id":"a"}\n{"custom_id":"b"}\n'


def serving(contents: list[bytes], stated: int | None = None) -> Callable[[Request], bytes]:
    def script(request: Request) -> bytes:
        if request.target.endswith("/content"):
            return contents.pop(0) if len(contents) > 1 else contents[0]
        return answer({"id": "file-o", "object": "file", "bytes": stated})

    return script


@pytest.mark.parametrize(
    ("broken", "stated"),
    [
        (cut(LINES[:20], len(LINES)), None),
        (cut(LINES[:20], None), None),
        (cut(LINES[:18], None), len(LINES)),
        (answer(LINES[:18], content_type="application/octet-stream"), len(LINES)),
    ],
    ids=["content-length", "half a line", "file.bytes", "file.bytes, honest http"],
)
def test_c29_a_cut_download_starts_over_and_leaves_no_half_file(broken, stated, tmp_path):
    path = tmp_path / "out.jsonl"
    whole = answer(LINES, content_type="application/octet-stream")
    with talking_to(serving([broken, whole], stated)) as (provider, _):
        assert download(provider, "file-o", path) == len(LINES)
    assert path.read_bytes() == LINES
    assert list(tmp_path.iterdir()) == [path]


def test_c29_a_download_that_stays_cut_is_not_kept(tmp_path):
    with talking_to(serving([cut(LINES[:20], None)])) as (provider, server):
        download = FileDownload(provider._client, provider._connection, "file-o", tmp_path / "out", pause_s=0.01)
        fault_from(download.run, ProviderUnavailable)
    assert server.paths().count("GET /v1/files/file-o/content") == 3
    assert list(tmp_path.iterdir()) == []


def test_c29_a_file_without_a_last_newline_is_whole_when_its_last_line_is(tmp_path):
    with talking_to(serving([cut(LINES[:-1], None)])) as (provider, _):
        assert download(provider, "file-o", tmp_path / "out") == len(LINES) - 1


def test_c13_an_empty_result_file_is_a_file(tmp_path):
    with talking_to(serving([cut(b"", None)], 0)) as (provider, _):
        assert download(provider, "file-e", tmp_path / "out") == 0
    assert (tmp_path / "out").read_bytes() == b""


def test_c31_c32_a_file_that_cannot_be_fetched_now_is_not_lost(tmp_path):
    for status in ("400 Bad", "404 No", "502 Bad gateway"):
        with talking_to(lambda request, status=status: error(status, None)) as (provider, _):
            fault_from(lambda: download(provider, "file-o", tmp_path / "out"), ProviderUnavailable)

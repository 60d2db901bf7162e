"""Documents and keys go to the host of the connection and to no other, and never unencrypted by mistake. Clients and
sockets are real."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
from providers.openai_talk import ENDED, KEY, download, fault_from, lookup, talking_to
from providers.scripted_server import Request, ScriptedServer, answer, cut

from nightmill.domain.errors import ConfigError, NightmillError, ProviderRefused, ProviderUnavailable, SubmitUnknown
from nightmill.domain.snapshots import BatchStatus
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.download import may_follow
from nightmill.providers.openai.download import FileDownload
from nightmill.providers.openai.models import list_models
from nightmill.providers.openai.watch import OpenAIWatcher

NOW = datetime(2025, 3, 1, tzinfo=UTC)
LINES = b'{"custom_id":"a"}\n'
FILE = answer(LINES, content_type="application/octet-stream")
SECRET = "X-Signature=CANARY-signed"
SCOPED = {"organization": "org-1", "project": "proj-1"}


@pytest.fixture
def elsewhere() -> Iterator[ScriptedServer]:
    """Another host: the same machine by another port."""
    with ScriptedServer(lambda request: FILE if "storage" in request.target else answer(ENDED)).running() as server:
        yield server


def moved(to: str, status: str = "307 Temporary Redirect") -> bytes:
    return answer(b"", status, location=to)


CALLS: dict[str, tuple[Callable, type[NightmillError]]] = {
    "upload": (lambda provider, path: provider.stage_input(path / "in.jsonl"), ProviderRefused),
    "submit": (lambda provider, path: provider.create("file-i", "t"), SubmitUnknown),
    "cancel": (lambda provider, path: provider.cancel("batch_1"), NightmillError),
    "delete": (lambda provider, path: provider.discard_input("file-i"), ProviderRefused),
    "poll": (lambda provider, path: provider.poll("batch_1"), ProviderUnavailable),
    "find": (lambda provider, path: lookup(provider, "file-i", "t", NOW), ProviderUnavailable),
}


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"])
@pytest.mark.parametrize("call", CALLS)
def test_no_call_follows_a_redirect_to_another_host(
    call: str, status: str, elsewhere: ScriptedServer, tmp_path: Path
) -> None:
    (tmp_path / "in.jsonl").write_bytes(b'{"custom_id": "CANARY document"}\n')
    send, kind = CALLS[call]
    with talking_to(lambda request: moved(f"{elsewhere.base_url}/x?{SECRET}", status), max_retries=2) as (provider, _):
        fault = fault_from(lambda: send(provider, tmp_path), kind)
    assert elsewhere.requests == []
    assert f"a redirect (HTTP {status[:3]}) to http://127.0.0.1:{elsewhere.port}" in fault.cause


@pytest.mark.parametrize("call", ["upload", "submit", "cancel", "delete"])
def test_no_call_that_changes_something_follows_a_redirect_within_its_host(call: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"{}\n")
    send, kind = CALLS[call]
    with talking_to(lambda request: moved(request.target + "/")) as (provider, server):
        fault_from(lambda: send(provider, tmp_path), kind)
    assert not [path for path in server.paths() if path.startswith(("POST", "DELETE")) and path.endswith("/")]


def test_a_question_follows_a_redirect_within_its_host_and_not_for_ever() -> None:
    def script(request: Request) -> bytes:
        return answer(ENDED) if request.target.endswith("/") else moved(request.target + "/")

    with talking_to(script) as (provider, server):
        assert provider.poll("batch_1").status is BatchStatus.ENDED
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    with talking_to(lambda request: moved(request.target)) as (provider, server):
        fault_from(lambda: provider.poll("batch_1"), ProviderUnavailable)
    assert len(server.requests) < 10


@pytest.mark.parametrize(
    "to", ["", "http://[", "//", "http://user:pw@127.0.0.1:1/", "file:///etc/passwd", "\x1b[31m", "http://\ud800"]
)
def test_a_redirect_to_nowhere_is_a_named_fault(to: str, tmp_path: Path) -> None:
    raw = b"HTTP/1.1 302 Found\r\nconnection: close\r\ncontent-length: 0\r\nlocation: "
    raw += to.encode("utf-8", "surrogatepass") + b"\r\n\r\n"
    with talking_to(lambda request: raw) as (provider, _):
        told = fault_from(lambda: provider.poll("batch_1"), NightmillError)
        told_too = fault_from(lambda: download(provider, "file-o", tmp_path / "out"), NightmillError)
    assert "\x1b" not in str(told) + str(told_too)


def test_the_triggerer_and_the_list_of_models_follow_no_redirect_to_another_host(elsewhere: ScriptedServer) -> None:
    async def watch(connection: ProviderConnection) -> None:
        watcher = OpenAIWatcher(connection)
        try:
            await watcher.statuses(["b"], NOW)
        finally:
            await watcher.close()

    with ScriptedServer(lambda request: moved(elsewhere.base_url)).running() as server:
        connection = ProviderConnection("llm_night", server.base_url, KEY)
        fault = fault_from(lambda: list_models(connection), ProviderUnavailable)
        fault_from(lambda: asyncio.run(watch(connection)), ProviderUnavailable)
    assert "the address that the provider documents into the host of the connection 'llm_night'" in fault.remedy
    assert elsewhere.requests == []


def test_a_result_file_behind_a_signed_address_is_fetched_without_the_key_and_the_address_is_in_no_log(
    elsewhere: ScriptedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "httpx2")

    def script(request: Request) -> bytes:
        target = f"http://127.0.0.1:{elsewhere.port}/storage/file-o?{SECRET}"
        return moved(target, "302 Found") if request.target.endswith("/content") else answer({"id": "f"})

    with talking_to(script, scopes=SCOPED) as (provider, _):
        assert download(provider, "file-o", tmp_path / "out") == len(LINES)
    [asked] = elsewhere.requests
    assert asked.target.endswith(SECRET)
    assert not {"authorization", "openai-organization", "openai-project", "cookie"} & set(asked.headers)
    assert KEY not in str(asked.headers)
    assert "/storage/file-o" in caplog.text
    assert SECRET not in caplog.text


def test_a_storage_that_refuses_or_redirects_on_is_tried_again_later_and_its_address_is_not_said(
    tmp_path: Path, elsewhere: ScriptedServer
) -> None:
    replies = [answer(b"expired", "403 No"), moved(f"{elsewhere.base_url}/storage"), cut(LINES[:5], 50)]
    for reply in replies:
        with ScriptedServer(lambda request, reply=reply: reply).running() as storage:
            to = moved(f"http://127.0.0.1:{storage.port}/x?{SECRET}")
            with talking_to(lambda request, to=to: to) as (provider, _):
                download = FileDownload(provider._client, provider._connection, "f", tmp_path / "o", pause_s=0)
                fault = fault_from(download.run, ProviderUnavailable)
        assert "CANARY" not in str(fault)
    assert elsewhere.requests == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("base_url", "allow_http", "target", "follows"),
    [
        ("https://llm.example/v1", False, "https://storage.example/f?s=1", True),
        ("https://llm.example/v1", False, "http://storage.example/f", False),
        ("https://llm.example/v1", True, "http://storage.example/f", False),
        ("https://llm.example/v1", False, "http://127.0.0.1:80/f", False),
        ("https://llm.example/v1", False, "https://user:pw@storage.example/f", False),
        ("http://llm.example/v1", True, "http://storage.example/f", True),
        ("http://127.0.0.1:1/v1", False, "http://storage.example/f", False),
        ("http://127.0.0.1:1/v1", False, "http://localhost:2/f", True),
        ("http://127.0.0.1:1/v1", False, "ftp://storage.example/f", False),
    ],
)
def test_a_result_file_is_never_fetched_less_safely_than_it_was_asked_for(
    base_url: str, allow_http: bool, target: str, follows: bool
) -> None:
    connection = ProviderConnection("llm_night", base_url, KEY, allow_http=allow_http)
    assert may_follow(httpx2.URL(target), connection) is follows


@pytest.mark.parametrize(
    "host",
    [
        "llm.example", "provider", "10.0.0.5", "169.254.169.254", "0.0.0.0", "127.1", "2130706433", "[::]",
        "[2001:db8::1]", "localhost.example", "127.0.0.1.example", "notlocalhost",
    ],
)  # fmt: skip
def test_plain_http_to_another_machine_needs_an_explicit_yes(host: str) -> None:
    with pytest.raises(ConfigError, match=r"Connection 'llm' would send its key and the documents unencrypted") as seen:
        ProviderConnection("llm", f"http://{host}:8000/v1", KEY)
    assert '{"allow_http": true} into its extra' in seen.value.remedy
    assert ProviderConnection("llm", f"http://{host}:8000/v1", KEY, allow_http=True).base_url
    assert ProviderConnection("llm", f"https://{host}:8000/v1", KEY).base_url


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "127.8.9.10"])
def test_plain_http_on_this_machine_just_works_and_asks_no_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    bound = "::1" if host == "[::1]" else host.lower().replace("localhost", "127.0.0.1")
    if bound == "::1" and not _has_ipv6():
        pytest.skip("no IPv6 here")
    with ScriptedServer(lambda request: answer({"data": [{"id": "m"}]}), host=bound).running() as server:
        assert list_models(ProviderConnection("llm", f"http://{host}:{server.port}/v1", KEY)) == {"m"}


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_a_proxy_of_the_environment_carries_calls_to_other_machines_within_the_same_limits(
    monkeypatch: pytest.MonkeyPatch, elsewhere: ScriptedServer
) -> None:
    replies = [answer({"data": [{"id": "m"}]}), moved(elsewhere.base_url)]
    with ScriptedServer(lambda request: replies.pop(0)).running() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        connection = ProviderConnection("llm", "http://provider.internal:8000/v1", KEY, allow_http=True)
        assert list_models(connection) == {"m"}
        fault_from(lambda: list_models(connection), ProviderUnavailable)
    assert proxy.requests[0].target == "http://provider.internal:8000/v1/models"
    assert elsewhere.requests == []


@pytest.mark.parametrize(
    "base_url",
    [
        "https://user:hush@llm.example/v1", "https://hush@llm.example/v1", "https://llm.example/v1?key=hush",
        "https://llm.example/v1#hush", "http://127.0.0.1\\@hush.example/v1", "http://127.0.0.1\t.hush.example/v1",
        "https://llm.example:99999/v1", "https://[::1/v1", "https://llm.example:x/v1", "https:///v1", "ftp://llm.example",
        "llm.example/v1", "", "https://llm .example/v1", "https://llm.example/v1\n", "https://llm.example/\x00",
    ],
)  # fmt: skip
def test_an_address_that_is_read_in_two_ways_or_carries_a_secret_is_refused_without_showing_it(base_url: str) -> None:
    with pytest.raises(ConfigError, match="The base URL of connection 'llm'") as seen:
        ProviderConnection("llm", base_url, KEY, allow_http=True)
    assert "hush" not in str(seen.value)
    assert seen.value.__cause__ is None

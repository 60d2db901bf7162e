"""A server whose certificate is not trusted is called so, on every call: nothing was sent, and a person can mend it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from providers.openai_talk import ENDED, SPEC, download, fault_from
from providers.scripted_server import ScriptedServer, answer
from support.tls import certificate, server_context

from nightmill.domain.errors import ProviderUnavailable, Transient
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.openai import CAPABILITIES, ENDPOINTS
from nightmill.providers.openai.models import list_models
from nightmill.providers.openai.transport import OpenAIBatches
from nightmill.providers.registry import open_watcher
from nightmill.services.airflow_rest import AirflowClient

SINCE = datetime(2025, 3, 1, tzinfo=UTC)


@contextmanager
def served_with(path: Path) -> Iterator[tuple[ProviderConnection, ScriptedServer]]:
    with ScriptedServer(lambda request: answer(ENDED), tls=server_context(path)).running() as server:
        yield ProviderConnection("llm_night", server.base_url, "sk-key", max_retries=0, timeout_s=10), server


def batches(connection: ProviderConnection) -> OpenAIBatches:
    return OpenAIBatches(connection, SPEC, ENDPOINTS[SPEC.task], CAPABILITIES)


def calls(connection: ProviderConnection, folder: Path) -> dict[str, Callable[[], object]]:
    provider = batches(connection)
    (folder / "in.jsonl").write_bytes(b"{}\n")
    return {
        "creating": lambda: provider.create("file-i", "t"),
        "polling": lambda: provider.poll("batch_1"),
        "uploading": lambda: provider.stage_input(folder / "in.jsonl"),
        "downloading": lambda: download(provider, "file-o", folder / "out"),
        "models": lambda: list_models(connection),
        "watching": lambda: asyncio.run(watching(connection)),
    }


async def watching(connection: ProviderConnection) -> object:
    watcher = open_watcher("openai", connection)
    try:
        return await watcher.statuses(["batch_1"], SINCE)
    finally:
        await watcher.close()


@pytest.mark.parametrize(
    ("host", "expired", "why"),
    [
        ("127.0.0.1", False, "self-signed certificate"),
        ("127.0.0.1", True, "certificate has expired"),
        ("127.0.0.2", False, "self-signed certificate"),
    ],
)
def test_an_untrusted_certificate_is_told_as_such(tmp_path: Path, host: str, expired: bool, why: str) -> None:
    with served_with(certificate(tmp_path, host=host, expired=expired)) as (connection, server):
        for call in calls(connection, tmp_path).values():
            fault = fault_from(call, ProviderUnavailable)
            assert f"its certificate is not trusted: {why}" in fault.cause or host != "127.0.0.1" or expired
            assert "'llm_night' is not to be trusted while" in fault.cause
            assert "SSL_CERT_FILE" in fault.remedy
    assert server.requests == []


def test_an_airflow_with_an_untrusted_certificate_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = certificate(tmp_path)
    with (
        ScriptedServer(lambda request: answer({"scheduler": {}}), tls=server_context(path)).running() as server,
        pytest.raises(Transient, match="is not to be trusted: its certificate is not trusted: self-signed") as caught,
        AirflowClient(server.base_url, "me", "hunter2") as client,
    ):
        client.health()
    assert "SSL_CERT_FILE" in caught.value.remedy
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with (
        ScriptedServer(lambda request: answer({"scheduler": {}}), tls=server_context(path)).running() as server,
        AirflowClient(server.base_url, "me", "hunter2") as client,
    ):
        assert client.health() == {"scheduler": {}}


def test_trusted_by_the_file_that_the_remedy_names_it_is_used_and_another_hosts_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with served_with(path) as (connection, server):
        assert batches(connection).poll("batch_1").provider_id == "batch_1"
    other = certificate(tmp_path, host="127.0.0.2")
    monkeypatch.setenv("SSL_CERT_FILE", str(other))
    with served_with(other) as (connection, server):
        fault = fault_from(
            lambda: batches(connection).poll("batch_1"),
            ProviderUnavailable,
        )
    assert "IP address mismatch, certificate is not valid for '127.0.0.1'" in fault.cause
    assert server.requests == []


def test_a_server_that_speaks_no_tls_is_told_as_such() -> None:
    with ScriptedServer(lambda request: answer(ENDED)).running() as server:
        connection = ProviderConnection("llm_night", server.base_url.replace("http:", "https:"), "k", max_retries=0)
        fault = fault_from(
            lambda: batches(connection).create("file-i", "t"),
            ProviderUnavailable,
        )
    assert "it does not speak TLS as it should" in fault.cause

"""What every adapter must do, against a server that behaves as documented: the real client and the real simulator.

A new adapter joins by adding its name to ADAPTERS and the simulator's side of its API.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from dev.practice_provider.server import RunningSimulator, start_in_thread
from dev.practice_provider.settings import Settings
from nightmill.domain.errors import ProviderRefused, ProviderUnavailable, SubmitUnknown
from nightmill.providers.connection import ProviderConnection, RequestSpec
from nightmill.providers.port import Answer, BatchProvider, BatchSnapshot, BatchStatus, LineError, ResultLine
from nightmill.providers.registry import open_provider, open_watcher
from nightmill.providers.result_files import split_lines

ADAPTERS = ["openai"]
SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}


@pytest.fixture
def simulator(tmp_path: Path) -> Iterator[RunningSimulator]:
    settings = Settings(data_dir=tmp_path / "simulator", api_key="sk-night", batch_s=0, count_tokens="approx")
    running = start_in_thread(settings)
    yield running
    running.stop()


@pytest.fixture(params=ADAPTERS)
def adapter(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def connection(simulator: RunningSimulator) -> ProviderConnection:
    return ProviderConnection("llm_night", simulator.base_url, "sk-night", max_retries=1)


@pytest.fixture
def provider(adapter: str, connection: ProviderConnection) -> Iterator[BatchProvider]:
    opened = open_provider(adapter, connection, RequestSpec("echo-1", response_schema=SCHEMA))
    yield opened
    opened.close()


def set_faults(simulator: RunningSimulator, **plan: Any) -> None:
    body = json.dumps(plan).encode()
    urlopen(Request(f"{simulator.control_url}/_faults", body, {"content-type": "application/json"})).close()


def write_input(provider: BatchProvider, path: Path, texts: dict[str, str]) -> Path:
    lines = (provider.request_line(key, [{"role": "user", "content": text}]) for key, text in texts.items())
    path.write_bytes(b"".join(lines))
    return path


def wait_until(provider: BatchProvider, batch_id: str, reached: Callable[[BatchSnapshot], bool]) -> BatchSnapshot:
    deadline = time.monotonic() + 30
    while not reached(snapshot := provider.poll(batch_id)):
        assert time.monotonic() < deadline, snapshot
        time.sleep(0.05)
    return snapshot


def ended(snapshot: BatchSnapshot) -> bool:
    return snapshot.status in (BatchStatus.ENDED, BatchStatus.FAILED) and not snapshot.results_pending


def collect(provider: BatchProvider, snapshot: BatchSnapshot, folder: Path) -> dict[str, ResultLine]:
    found: dict[str, ResultLine] = {}
    for file_id in (snapshot.output_file_id, snapshot.error_file_id):
        if file_id is not None:
            path = folder / f"{file_id}.jsonl"
            assert provider.download(file_id, path) == path.stat().st_size
            for result in provider.read_lines(split_lines(path)):
                assert isinstance(result, (Answer, LineError))
                found[result.custom_id] = result
    return found


def run(provider: BatchProvider, folder: Path, texts: dict[str, str]) -> tuple[BatchSnapshot, dict[str, ResultLine]]:
    file_id = provider.upload(write_input(provider, folder / "in.jsonl", texts))
    submitted = provider.submit(file_id, "token-1")
    snapshot = wait_until(provider, submitted.provider_id, ended)
    return snapshot, collect(provider, snapshot, folder)


def test_every_item_that_goes_out_comes_back_with_its_answer_and_usage(provider, simulator, tmp_path):
    texts = {f"r-{n}": f"word{n} \u5408\u540c\u2028 {{x}}" for n in range(120)}
    snapshot, results = run(provider, tmp_path, texts)
    assert snapshot.status is BatchStatus.ENDED
    assert snapshot.token == "token-1"
    assert snapshot.counts == {"total": 120, "completed": 120, "failed": 0}
    assert set(results) == set(texts)
    for key, result in results.items():
        assert isinstance(result, Answer)
        assert json.loads(result.text or "")["word"].startswith(texts[key].split()[0])
        assert result.usage.prompt_tokens
        assert result.usage.completion_tokens
        assert result.model
    assert simulator.books(summary=True)["executed"] == 120


def test_a_line_that_fails_is_an_error_of_its_own_item(provider, simulator, tmp_path):
    set_faults(simulator, line_error=[{"match": "r-1$", "status": 429, "code": "rate_limit_exceeded", "times": None}])
    _, results = run(provider, tmp_path, {"r-1": "one", "r-2": "two"})
    assert isinstance(results["r-2"], Answer)
    failed = results["r-1"]
    assert isinstance(failed, LineError)
    assert (failed.status, failed.code) == (429, "rate_limit_exceeded")


def test_c01_a_batch_whose_lines_all_failed_has_an_error_file_only(provider, simulator, tmp_path):
    set_faults(simulator, line_error=[{"status": 500, "times": None}])
    snapshot, results = run(provider, tmp_path, {"r-1": "one", "r-2": "two"})
    assert (snapshot.status, snapshot.output_file_id) == (BatchStatus.ENDED, None)
    assert not snapshot.results_pending
    assert {type(result) for result in results.values()} == {LineError}


def test_c19_a_file_that_the_provider_does_not_accept_fails_with_its_lines(provider, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(provider.request_line("r-1", [{"role": "user", "content": "x"}]) + b"not json\n")
    submitted = provider.submit(provider.upload(path), "token-1")
    snapshot = wait_until(provider, submitted.provider_id, ended)
    assert snapshot.status is BatchStatus.FAILED
    assert [(problem.code, problem.line) for problem in snapshot.problems] == [("invalid_json_line", 2)]


@pytest.mark.parametrize("fault", ["drop_create_reply", "fail_create_after_accept"])
def test_c35_c37_a_lost_reply_is_found_again_and_paid_once(provider, simulator, tmp_path, fault):
    since = datetime.now(UTC)
    file_id = provider.upload(write_input(provider, tmp_path / "in.jsonl", {"r-1": "one"}))
    set_faults(simulator, **{fault: 1})
    with pytest.raises(SubmitUnknown):
        provider.submit(file_id, "token-7")
    by_file = provider.find_submitted(file_id, "another-token", since)
    by_token = provider.find_submitted("file-other", "token-7", since)
    assert by_file.complete
    assert by_token.complete
    (adopted,) = by_file.found
    assert [snapshot.provider_id for snapshot in by_token.found] == [adopted.provider_id]
    wait_until(provider, adopted.provider_id, ended)
    books = simulator.books(summary=True)
    assert (books["executed"], len(books["batches"])) == (1, 1)


def test_what_was_never_submitted_is_proved_absent(provider):
    found = provider.find_submitted("file-none", "no-token", datetime.now(UTC))
    assert (tuple(found.found), found.complete) == ((), True)


def test_a_search_reads_past_the_first_page(provider, tmp_path):
    since = datetime.now(UTC)
    file_id = provider.upload(write_input(provider, tmp_path / "in.jsonl", {"r-1": "one"}))
    first = provider.submit(file_id, "token-first")
    for number in range(105):
        provider.submit(file_id, f"token-{number}")
    found = provider.find_submitted("file-other", "token-first", since)
    assert [snapshot.provider_id for snapshot in found.found] == [first.provider_id]
    assert found.complete


def test_a_listing_tells_every_batch_that_carries_a_token(provider, tmp_path):
    since = datetime.now(UTC)
    file_id = provider.upload(write_input(provider, tmp_path / "in.jsonl", {"r-1": "one"}))
    made = {token: provider.submit(file_id, token).provider_id for token in ("token-a", "token-b")}
    listed = provider.list_submitted(since)
    assert listed.complete
    assert {one.token: one.provider_id for one in listed.found} == made


def test_a_running_batch_can_be_cancelled_and_an_ended_one_too(provider, simulator, tmp_path):
    set_faults(simulator, hold=True)
    file_id = provider.upload(write_input(provider, tmp_path / "in.jsonl", {"r-1": "one"}))
    batch_id = provider.submit(file_id, "token-1").provider_id
    provider.cancel(batch_id)
    snapshot = wait_until(provider, batch_id, ended)
    assert (snapshot.status, snapshot.raw_status) == (BatchStatus.ENDED, "cancelled")
    assert provider.cancel(batch_id).provider_id == batch_id


def test_c73_c91_any_local_file_name_is_uploaded_under_an_allowed_one(provider, tmp_path):
    path = write_input(provider, tmp_path / "donn\u00e9es_\u65e5\u672c.jsonl.part", {"r-1": "one"})
    assert provider.upload(path)


def test_a_batch_that_does_not_exist_may_still_appear(provider):
    with pytest.raises(ProviderUnavailable):
        provider.poll("batch_none")


def test_a_deleted_file_can_be_deleted_again(provider, tmp_path):
    file_id = provider.upload(write_input(provider, tmp_path / "in.jsonl", {"r-1": "one"}))
    provider.delete_file(file_id)
    provider.delete_file(file_id)
    with pytest.raises(ProviderUnavailable):
        provider.download(file_id, tmp_path / "out")


def test_a_wrong_key_is_refused_with_the_connection_to_look_at(adapter, simulator, tmp_path):
    connection = ProviderConnection("llm_other", simulator.base_url, "sk-CANARY")
    stranger = open_provider(adapter, connection, RequestSpec("echo-1"))
    try:
        with pytest.raises(ProviderRefused, match="llm_other") as caught:
            stranger.submit("file-1", "token-1")
    finally:
        stranger.close()
    assert caught.value.status == 401
    assert "CANARY" not in str(caught.value)


def test_one_listing_tells_the_status_of_many_batches(adapter, connection, provider, simulator, tmp_path):
    set_faults(simulator, hold=True)
    file_id = provider.upload(write_input(provider, tmp_path / "in.jsonl", {"r-1": "one"}))
    ids = [provider.submit(file_id, f"token-{number}").provider_id for number in range(50)]
    before = simulator.books(summary=True)["calls"]

    async def watch() -> dict[str, BatchStatus]:
        watcher = open_watcher(adapter, connection)
        try:
            return dict(await watcher.statuses([*ids[:40], "batch_none"], datetime.now(UTC) - timedelta(hours=1)))
        finally:
            await watcher.close()

    seen = asyncio.run(watch())
    after = simulator.books(summary=True)["calls"]
    assert set(seen) == set(ids[:40])
    assert set(seen.values()) <= {BatchStatus.WAITING, BatchStatus.RUNNING}
    assert sum(after.values()) - sum(before.values()) == 1

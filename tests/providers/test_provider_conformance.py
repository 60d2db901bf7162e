"""What every adapter must do, against a server that behaves as documented: the real client and the real practice
provider. Only what the port says is asserted; what an adapter cannot do, by its capabilities, is left out.

A new adapter joins by its line in CASES and by the practice provider's side of its API.
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
from providers.adapters_under_test import CASES, Case

from dev.practice_provider.server import RunningSimulator, start_in_thread
from dev.practice_provider.settings import Settings
from nightmill.domain.capabilities import Input
from nightmill.domain.endings import Ending
from nightmill.domain.errors import ProviderRefused, ProviderUnavailable, SubmitUnknown
from nightmill.domain.snapshots import Absent, BatchStatus, Found, Snapshot, Stopped, Unclear, holds_answers
from nightmill.providers.answers import Answer, Failed, ResultLine, Said
from nightmill.providers.port import SentCreate
from nightmill.providers.provider import Provider
from nightmill.providers.registry import adapter, open_provider, open_watcher
from nightmill.providers.result_files import split_lines

TOKEN = "0a1b2c3d4e5f6071"


@pytest.fixture
def practice(tmp_path: Path) -> Iterator[RunningSimulator]:
    settings = Settings(data_dir=tmp_path / "practice", api_key="sk-night", batch_s=0, count_tokens="approx")
    running = start_in_thread(settings)
    yield running
    running.stop()


@pytest.fixture(params=CASES, ids=lambda case: case.adapter)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture
def provider(case: Case, practice: RunningSimulator) -> Iterator[Provider]:
    opened = open_provider(case.adapter, case.connection(practice), case.spec)
    yield opened
    opened.transport.close()


def can(provider: Provider, *, needs: bool) -> None:
    if not needs:
        pytest.skip("not among this adapter's capabilities")


def set_faults(practice: RunningSimulator, **plan: Any) -> None:
    body = json.dumps(plan).encode()
    urlopen(Request(f"{practice.control_url}/_faults", body, {"content-type": "application/json"})).close()


def record(number: int) -> str:
    return f"{TOKEN}-0-{number}"


def write_input(provider: Provider, path: Path, texts: dict[str, str]) -> Path:
    lines = (provider.request_line(key, [{"role": "user", "content": text}]) for key, text in texts.items())
    path.write_bytes(b"".join(lines))
    return path


def staged(provider: Provider, folder: Path, texts: dict[str, str]) -> str | Path:
    """What a create call is made with."""
    path = write_input(provider, folder / "in.jsonl", texts)
    if provider.transport.capabilities.input is Input.INLINE:
        return path
    ref = provider.transport.stage_input(path)
    assert ref is not None
    return ref


def sent(since: datetime, requests: str | Path, count: int = 1, token: str = TOKEN) -> SentCreate:
    return SentCreate(token, since, count, requests if isinstance(requests, str) else None)


def wait_until(provider: Provider, batch_id: str, reached: Callable[[Snapshot], bool]) -> Snapshot:
    deadline = time.monotonic() + 30
    while not reached(snapshot := provider.transport.poll(batch_id)):
        assert time.monotonic() < deadline, snapshot
        time.sleep(0.05)
    return snapshot


def ended(snapshot: Snapshot) -> bool:
    return snapshot.status in (BatchStatus.ENDED, BatchStatus.FAILED) and not snapshot.results_pending


def collect(provider: Provider, snapshot: Snapshot, folder: Path) -> dict[str, Said]:
    found: dict[str, Said] = {}
    results = provider.transport.results(snapshot.provider_id, snapshot.result_refs, folder, "results")
    assert {file.name for file in results.files} == set(snapshot.result_refs)
    for file in results.files:
        assert file.path == folder / f"results.{file.name}"
        assert file.size == file.path.stat().st_size
        for line in provider.read_lines(split_lines(file.path)):
            assert isinstance(line, ResultLine)
            assert f'"{provider.transport.id_key}"'.encode() in file.path.read_bytes()
            found[line.record_id] = line.said
    assert results.expected_lines in (None, len(found))
    return found


def run(provider: Provider, folder: Path, texts: dict[str, str]) -> tuple[Snapshot, dict[str, Said]]:
    handle = provider.transport.create(staged(provider, folder, texts), TOKEN)
    snapshot = wait_until(provider, handle.provider_id, ended)
    return snapshot, collect(provider, snapshot, folder)


def test_every_request_that_goes_out_comes_back_with_its_answer_and_usage(provider, practice, tmp_path):
    texts = {record(n): f"word{n} \u5408\u540c\u2028 {{x}}" for n in range(120)}
    snapshot, results = run(provider, tmp_path, texts)
    assert snapshot.status is BatchStatus.ENDED
    assert snapshot.stopped is None
    assert snapshot.token in (TOKEN, None)
    assert (snapshot.requests_done, snapshot.requests_answered, snapshot.requests_total) == (120, 120, 120)
    assert any(map(holds_answers, snapshot.result_refs))
    assert set(results) == set(texts)
    for key, said in results.items():
        assert isinstance(said, Answer)
        assert json.loads(said.text or "")["word"].startswith(texts[key].split()[0])
        assert said.ending is Ending.FINISHED
        assert said.usage.prompt
        assert said.usage.output
        assert said.model
    assert practice.books(summary=True)["executed"] == 120


def test_times_and_windows_are_told_as_the_capabilities_say(provider, tmp_path):
    snapshot, _ = run(provider, tmp_path, {record(1): "one"})
    capabilities = provider.transport.capabilities
    assert snapshot.created_at is not None
    if capabilities.window is not None and snapshot.window_ends_at is not None:
        assert abs(snapshot.window_ends_at - snapshot.created_at - capabilities.window) < timedelta(minutes=1)
    if capabilities.results_kept is not None:
        assert snapshot.results_until is not None
        assert abs(snapshot.results_until - snapshot.created_at - capabilities.results_kept) < timedelta(minutes=1)


def test_an_answer_that_its_limit_cut_says_so(provider, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(provider.request_line(record(1), [{"role": "user", "content": "one two three four five"}], 1))
    requests: Any = path
    if provider.transport.capabilities.input is not Input.INLINE:
        requests = provider.transport.stage_input(path)
    handle = provider.transport.create(requests, TOKEN)
    results = collect(provider, wait_until(provider, handle.provider_id, ended), tmp_path)
    said = results[record(1)]
    assert isinstance(said, Answer)
    assert said.ending is Ending.TRUNCATED


def test_a_line_that_fails_is_an_error_of_its_own_request(provider, practice, tmp_path):
    set_faults(practice, line_error=[{"match": "-1$", "status": 429, "code": "rate_limit_exceeded", "times": None}])
    _, results = run(provider, tmp_path, {record(1): "one", record(2): "two"})
    assert isinstance(results[record(2)], Answer)
    failed = results[record(1)]
    assert isinstance(failed, Failed)
    assert failed.code
    assert failed.status in (429, 0)


def test_c01_a_batch_whose_lines_all_failed_has_results_all_the_same(provider, practice, tmp_path):
    set_faults(practice, line_error=[{"status": 500, "times": None}])
    snapshot, results = run(provider, tmp_path, {record(1): "one", record(2): "two"})
    assert snapshot.status is BatchStatus.ENDED
    assert (snapshot.requests_done, snapshot.requests_answered) == (2, 0)
    assert not snapshot.results_pending
    assert {type(said) for said in results.values()} == {Failed}


def test_c19_a_file_that_the_provider_does_not_accept_fails_with_its_lines(provider, tmp_path):
    can(provider, needs=provider.transport.capabilities.input is Input.FILE)
    path = tmp_path / "in.jsonl"
    path.write_bytes(provider.request_line(record(1), [{"role": "user", "content": "x"}]) + b"not json\n")
    handle = provider.transport.create(provider.transport.stage_input(path), TOKEN)
    snapshot = wait_until(provider, handle.provider_id, ended)
    assert snapshot.status is BatchStatus.FAILED
    assert [complaint.line for complaint in snapshot.complaints] == [2]
    assert snapshot.complaints[0].code


@pytest.mark.parametrize("fault", ["drop_create_reply", "fail_create_after_accept"])
def test_c35_c37_a_create_call_is_sent_once_and_a_lost_reply_is_looked_up(provider, practice, tmp_path, fault):
    since = datetime.now(UTC)
    requests = staged(provider, tmp_path, {record(1): "one"})
    set_faults(practice, **{fault: 1})
    with pytest.raises(SubmitUnknown):
        provider.transport.create(requests, TOKEN)
    deadline = time.monotonic() + 30
    while not isinstance(found := provider.transport.lookup(sent(since, requests)), Found):
        assert isinstance(found, Unclear), found
        assert len(found.candidates) == 1
        assert found.can_change
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not found.others
    wait_until(provider, found.snapshot.provider_id, ended)
    books = practice.books(summary=True)
    assert (books["executed"], len(books["batches"])) == (1, 1)


def test_what_was_never_sent_is_not_found(provider):
    found = provider.transport.lookup(sent(datetime.now(UTC), "file-none", token="f" * 16))
    assert found == Absent() or (isinstance(found, Unclear) and not provider.transport.capabilities.can_prove_absence)


def test_a_lookup_reads_past_the_first_page(provider, tmp_path):
    can(provider, needs=provider.transport.capabilities.can_prove_absence)
    since = datetime.now(UTC)
    requests = staged(provider, tmp_path, {record(1): "one"})
    first = provider.transport.create(requests, "a" * 16)
    for number in range(105):
        provider.transport.create(requests, f"{number:016x}")
    found = provider.transport.lookup(SentCreate("a" * 16, since, 1, "file-other"))
    assert isinstance(found, Found)
    assert found.snapshot.provider_id == first.provider_id


def test_a_listing_tells_every_batch_that_carries_a_token(provider, tmp_path):
    can(provider, needs=provider.transport.capabilities.lists_ours)
    since = datetime.now(UTC)
    requests = staged(provider, tmp_path, {record(1): "one"})
    made = {token: provider.transport.create(requests, token).provider_id for token in ("a" * 16, "b" * 16)}
    listed = provider.transport.list_ours(since)
    assert listed.complete
    assert {one.token: one.provider_id for one in listed.found} == made


def test_a_running_batch_can_be_cancelled_and_an_ended_one_too(provider, practice, tmp_path):
    set_faults(practice, hold=True)
    batch_id = provider.transport.create(staged(provider, tmp_path, {record(1): "one"}), TOKEN).provider_id
    assert provider.transport.cancel(batch_id).provider_id == batch_id
    snapshot = wait_until(provider, batch_id, ended)
    assert (snapshot.status, snapshot.stopped) == (BatchStatus.ENDED, Stopped.CANCELLED)
    assert provider.transport.cancel(batch_id).provider_id == batch_id


def test_c73_c91_any_local_file_name_is_taken(provider, tmp_path):
    path = write_input(provider, tmp_path / "donn\u00e9es_\u65e5\u672c.jsonl.part", {record(1): "one"})
    inline = provider.transport.capabilities.input is Input.INLINE
    assert provider.transport.create(path if inline else provider.transport.stage_input(path), TOKEN).provider_id


def test_a_batch_that_does_not_exist_may_still_appear(provider):
    with pytest.raises(ProviderUnavailable):
        provider.transport.poll("batch_none")


def test_a_discarded_input_can_be_discarded_again_and_makes_a_late_create_fail(provider, practice, tmp_path):
    can(provider, needs=provider.transport.capabilities.stages_input)
    ref = staged(provider, tmp_path, {record(1): "one"})
    provider.transport.discard_input(ref)
    provider.transport.discard_input(ref)
    with pytest.raises((ProviderRefused, ProviderUnavailable)):
        provider.transport.create(ref, TOKEN)
    assert practice.books(summary=True)["executed"] == 0


def test_one_plain_call_is_answered_at_once(provider, practice):
    asked = provider.dialect.encode([{"role": "user", "content": "night shift"}])
    said = provider.dialect.read(provider.transport.ask(asked))
    assert isinstance(said, Answer)
    assert json.loads(said.text or "")["word"].startswith("night")
    assert practice.books(summary=True)["executed"] == 1


def test_a_plain_call_that_the_provider_refuses_is_read_as_a_failure(case, practice):
    spec = case.spec.__class__("no-such-model", case.task, max_output_tokens=5)
    provider = open_provider(case.adapter, case.connection(practice), spec)
    try:
        reply = provider.transport.ask(provider.dialect.encode([{"role": "user", "content": "x"}]))
    finally:
        provider.transport.close()
    assert isinstance(provider.dialect.read(reply), Failed)


def test_a_wrong_key_is_refused_with_the_connection_to_look_at(case, practice, tmp_path):
    stranger = open_provider(case.adapter, case.connection(practice, "sk-CANARY", "llm_other"), case.spec)
    path = write_input(stranger, tmp_path / "in.jsonl", {record(1): "one"})
    inline = stranger.transport.capabilities.input is Input.INLINE
    try:
        with pytest.raises(ProviderRefused, match="llm_other") as caught:
            stranger.transport.create(path if inline else "file-1", TOKEN)
    finally:
        stranger.transport.close()
    assert caught.value.status == 401
    assert "CANARY" not in str(caught.value)


def test_one_listing_tells_the_status_of_many_batches(case, provider, practice, tmp_path):
    can(provider, needs=adapter(case.adapter).open_watcher is not None)
    set_faults(practice, hold=True)
    requests = staged(provider, tmp_path, {record(1): "one"})
    ids = [provider.transport.create(requests, f"{number:016x}").provider_id for number in range(50)]
    before = practice.books(summary=True)["calls"]

    async def watch() -> dict[str, BatchStatus]:
        watcher = open_watcher(case.adapter, case.connection(practice))
        try:
            return dict(await watcher.statuses([*ids[:40], "batch_none"], datetime.now(UTC) - timedelta(hours=1)))
        finally:
            await watcher.close()

    seen = asyncio.run(watch())
    after = practice.books(summary=True)["calls"]
    assert set(seen) == set(ids[:40])
    assert set(seen.values()) <= {BatchStatus.WAITING, BatchStatus.RUNNING}
    assert sum(after.values()) - sum(before.values()) == 1


def test_the_optional_parts_answer_where_there_are_any(case, practice):
    parts, connection = adapter(case.adapter), case.connection(practice)
    if parts.list_models is not None:
        assert case.model in parts.list_models(connection)
    if parts.missing_routes is not None:
        assert not parts.missing_routes(connection).missing
    if parts.clock_behind is not None:
        behind = parts.clock_behind(connection)
        assert behind is None or abs(behind) < timedelta(minutes=1)

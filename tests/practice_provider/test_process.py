"""The simulator as a process of its own, killed and started again on the same data folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.practice_provider.server import start_in_thread
from dev.practice_provider.settings import Settings
from nightmill.domain.errors import ConfigError
from practice_provider.client import Client, chat_lines, jsonl
from practice_provider.conftest import StartSimulator

INCLUDE = Path(__file__).parents[2] / "include"


class Process:
    def __init__(self, data_dir: Path, *arguments: str) -> None:
        port_file = data_dir.parent / "port"
        port_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "dev.practice_provider", "--port", "0", "--port-file", str(port_file)]
        command += ["--data-dir", str(data_dir), "--count-tokens", "approx", *arguments]
        environment = os.environ | {"PYTHONPATH": str(INCLUDE)}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline().strip()
        self.client = Client(self.line.rpartition(" ")[2])
        assert int(port_file.read_text()) == int(self.client.base_url.split(":")[2].split("/")[0])

    def end(self, how: signal.Signals) -> int:
        self.client.close()
        self.process.send_signal(how)
        code = self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    started: list[Process] = []
    yield started
    for one in started:
        if one.process.poll() is None:
            one.end(signal.SIGKILL)


def test_a_killed_simulator_goes_on_where_it_was(tmp_path: Path, processes: list[Process]) -> None:
    data_dir = tmp_path / "data"
    processes.append(Process(data_dir, "--batch-seconds", "3"))
    client = processes[0].client
    assert processes[0].line.startswith("practice provider listening on http://127.0.0.1:")
    batch = client.submit(chat_lines(400), metadata={"token": "t-1"})
    client.wait_for_lines(batch.id, 50)
    processes[0].end(signal.SIGKILL)

    processes.append(Process(data_dir, "--batch-seconds", "3"))
    client = processes[1].client
    assert client.sdk.batches.retrieve(batch.id).metadata == {"token": "t-1"}
    ended = client.wait(batch.id)
    assert ended.status == "completed"
    answered = [line["custom_id"] for line in client.result_lines(ended.output_file_id)]
    assert sorted(answered) == sorted(f"r-{number}" for number in range(400))
    books = client.books()
    assert (books["executed"], books["duplicates"]) == (400, [])
    assert books["calls"]["POST /v1/batches"] == 1


def test_kills_while_it_runs_at_full_speed_execute_nothing_twice(tmp_path: Path, processes: list[Process]) -> None:
    data_dir = tmp_path / "data"
    processes.append(Process(data_dir, "--batch-seconds", "0"))
    batch = processes[0].client.submit(chat_lines(6_000))
    for lines in (1, 2_500):
        processes[-1].client.wait_for_lines(batch.id, lines)
        processes[-1].end(signal.SIGKILL)
        processes.append(Process(data_dir, "--batch-seconds", "0"))
    client = processes[-1].client
    ended = client.wait(batch.id)
    answered = [line["custom_id"] for line in client.result_lines(ended.output_file_id)]
    assert len(answered) == len(set(answered)) == 6_000
    books = client.books(summary=True)
    assert (books["executed"], books["duplicates"]) == (6_000, [])
    assert ended.request_counts is not None
    assert ended.request_counts.completed == 6_000


def test_results_that_were_written_but_not_committed_are_dropped(tmp_path: Path, start: StartSimulator) -> None:
    data_dir = tmp_path / "data"
    client = start(data_dir=data_dir)
    client.faults(hold=True, hold_after=3)
    batch = client.submit(chat_lines(6))
    client.wait_for_lines(batch.id, 3)
    client.simulator.stop()
    [written] = (data_dir / "files").glob("file-o*")
    with written.open("ab") as output:
        output.write(b'{"custom_id": "half a li')
    client = start(data_dir=data_dir)
    client.faults(hold=False)
    ended = client.wait(batch.id)
    assert len(client.result_lines(ended.output_file_id)) == 6
    assert (client.books()["executed"], client.books()["duplicates"]) == (6, [])


def test_faults_given_at_the_start_are_taken_once(tmp_path: Path, processes: list[Process]) -> None:
    faults = ("--faults", '{"fail_create_after_accept": 1}')
    processes.append(Process(tmp_path / "data", *faults))
    client = processes[0].client
    file_id = client.upload(jsonl(chat_lines(1)))
    assert client.http.post("/v1/batches", json=_create(file_id)).status_code == 500
    processes[0].end(signal.SIGKILL)
    processes.append(Process(tmp_path / "data", *faults))
    assert processes[1].client.http.post("/v1/batches", json=_create(file_id)).status_code == 200


def test_settings_of_anthropic_are_given_as_json(tmp_path: Path, processes: list[Process]) -> None:
    processes.append(Process(tmp_path / "data", "--anthropic", '{"queued_requests": 1, "retry_after_s": 9}'))
    given = {"requests": [{"custom_id": name, "params": {}} for name in "ab"]}
    answer = processes[0].client.http.post(
        "/v1/messages/batches", json=given, headers={"anthropic-version": "2023-06-01"}
    )
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "9")


def _create(file_id: str) -> dict[str, str]:
    return {"input_file_id": file_id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}


def test_a_second_simulator_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    first = start_in_thread(settings)
    try:
        with pytest.raises(ConfigError, match="already runs"):
            start_in_thread(settings)
    finally:
        first.stop()
    start_in_thread(settings).stop()

"""Rounds of retries: budgets by class, what waits for what, what each attempt leaves behind, Retry-After."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from support.pipeline import Pipeline
from support.steps import counts, one_shard, paid_once, provider_batches, set_faults, wake_until

from dev.practice_provider.server import RunningSimulator
from nightmill.stages.run_shard import Waiting

StartSimulator = Callable[..., RunningSimulator]


def test_each_class_has_a_budget_of_its_own_and_max_attempts_bounds_them_all(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "max_attempts: 3, base_delay_s: 0", "transient: 1, base_delay_s: 0")
    batch, shard = one_shard(pipeline)
    always = {"match": "-5$", "status": 503, "code": "overloaded", "times": None}
    set_faults(pipeline.simulator, line_error=[always])
    pipeline.drive([shard])
    assert pipeline.sql("select ordinal, attempts from nightmill.dead_letter") == [(5, 2)]
    assert counts(pipeline, batch) == {"accepted": 19, "dead_lettered": 1}
    paid_once(pipeline, 19)


def test_what_never_failed_goes_out_at_once_while_a_failed_item_waits_for_its_round(pipeline: Pipeline) -> None:
    """Ten items fit into a file and a file's tokens into the account: the second file goes out when the first ended."""
    pipeline.edit("job.yaml", "base_delay_s: 0", "base_delay_s: 100000")
    pipeline.edit("job.yaml", "retry: {", "retry: {max_delay_s: 100000, ")
    batch, shard = one_shard(pipeline)
    [(tokens,)] = pipeline.sql("select max(tokens)::int * 5 from nightmill.item")
    pipeline.edit(
        "job.yaml",
        "poll_interval_s: 1",
        f"poll_interval_s: 1\n  limits: {{requests_per_file: 10, enqueued_prompt_tokens: {tokens}}}",
    )
    set_faults(pipeline.simulator, line_error=[{"match": "-2$", "times": 1}])
    until = time.monotonic() + 120
    while counts(pipeline, batch).get("accepted") != 19:
        assert time.monotonic() < until, counts(pipeline, batch)
        assert isinstance(pipeline.wake(shard), Waiting)
        time.sleep(0.05)
    assert "1 items wait for their next round" in pipeline.wake(shard).line
    assert len(provider_batches(pipeline)) > 1

    pipeline.sql("update nightmill.attempt set made_at = made_at - interval '100001 seconds'")
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    paid_once(pipeline, 20)


def test_each_attempt_says_which_one_it_is_what_it_waited_and_whether_it_was_executed(
    pipeline: Pipeline, start_simulator: StartSimulator
) -> None:
    pipeline.simulator = start_simulator(completion_window_s=1)
    set_faults(pipeline.simulator, hold=True, hold_after=8)
    _, shard = one_shard(pipeline)
    wake_until(pipeline, shard, "COLLECTED")
    set_faults(pipeline.simulator)
    pipeline.drive([shard])
    rows = pipeline.sql(
        "select attempt_no, class, code, sent_upstream, backoff_s is not null, prompt_tokens is not null, "
        "provider_id like 'batch_%%', count(*) from nightmill.attempt_cost group by 1, 2, 3, 4, 5, 6, 7 order by 1, 2"
    )
    assert rows == [
        (1, "transient", "batch_expired", False, False, False, True, 12),
        (1, None, None, True, False, True, True, 8),
        (2, None, None, True, True, True, True, 12),
    ]
    assert pipeline.sql("select bool_and(backoff_s between 0 and 20) from nightmill.attempt where attempt_no = 2") == [
        (True,)
    ]


@contextmanager
def slowing_down(**headers: str) -> Iterator[tuple[str, list[str]]]:
    """A provider that answers everything with 429 and these headers; yields its address and the calls it got."""
    calls: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            calls.append(self.path)
            self.send_response(429)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("content-length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", calls
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("seconds", ["864000", "1e300"])
def test_a_provider_is_left_alone_for_a_day_at_most(pipeline: Pipeline, seconds: str) -> None:
    _, shard = one_shard(pipeline)
    with slowing_down(retry_after=seconds) as (address, _):
        pipeline.base_url = address
        waiting = pipeline.wake(shard, restarted=True)
    assert isinstance(waiting, Waiting)
    assert timedelta(hours=23) < waiting.until - pipeline.env.now() <= timedelta(hours=24)


@pytest.mark.parametrize("form", ["seconds", "date", "milliseconds"])
def test_a_provider_that_names_a_time_is_left_alone_until_then(pipeline: Pipeline, form: str) -> None:
    headers = {
        "seconds": {"retry_after": "900"},
        "date": {"retry_after": format_datetime(datetime.now(UTC) + timedelta(seconds=900), usegmt=True)},
        "milliseconds": {"retry_after_ms": "900000"},
    }[form]
    batch, shard = one_shard(pipeline)
    with slowing_down(**headers) as (address, calls):
        pipeline.base_url = address
        asked = pipeline.wake(shard, restarted=True)
        assert isinstance(asked, Waiting)
        assert timedelta(seconds=850) < asked.until - pipeline.env.now() <= timedelta(seconds=901)
        before = len(calls)
        again = pipeline.wake(shard)  # its trigger woke it early: nothing is asked
        assert isinstance(again, Waiting)
        assert "asked to be left alone" in again.line
        assert again.until > pipeline.env.now() + timedelta(seconds=800)
        assert len(calls) == before

    pipeline.base_url = ""
    pipeline.clock_offset += timedelta(seconds=902)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    paid_once(pipeline, 20)

"""`python -m nightmill status`: where batches stand, once, as a live view, and as JSON."""

from __future__ import annotations

import io
import json
import logging
import os
import re
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import cancel, publish_unchecked, run_unchecked, set_faults

from nightmill.cli import status
from nightmill.cli.commands import main
from nightmill.domain.errors import NightmillError
from nightmill.operations.status import look
from nightmill.stages import freeze


@pytest.fixture
def deployed(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", pipeline.writer_dsn)
    monkeypatch.setenv("AIRFLOW_CONN_SOURCE", pipeline.admin_dsn)
    monkeypatch.delenv("NIGHTMILL_OBJECT_STORE_CONN_ID", raising=False)
    monkeypatch.setenv("NIGHTMILL_OBJECT_STORE", f"file://{pipeline.store}")
    return pipeline


def never(_: float) -> None:
    pytest.fail("the view stays open")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def said(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["status", *options]) == 0
    return capsys.readouterr().out


def test_without_batches_it_says_so(deployed: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys) == "no batches\n"
    assert said(capsys, "--json") == "[]\n"


def test_each_open_batch_and_the_newest_closed_one_of_a_job_is_shown(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = deployed.freeze("run-1"), deployed.freeze("run-2")
    cancel(deployed, first.batch_id), cancel(deployed, second.batch_id)
    third, fourth = deployed.freeze("run-3"), deployed.freeze("run-4")
    found: list[dict[str, Any]] = json.loads(said(capsys, "--json"))
    assert [(one["batch_id"], one["state"]) for one in found] == [
        (second.batch_id, "CANCELLED"), (third.batch_id, "PLANNING"), (fourth.batch_id, "PLANNING"),
    ]  # fmt: skip
    assert found[1]["buckets"] == {"unsettled": 20}


def test_a_running_batch_shows_shards_items_provider_batches_tokens_and_cost(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = deployed.freeze()
    first, second = deployed.plan(batch)
    deployed.drive([first])
    assert re.search(r"^  to go     about \d+ seconds? at the pace so far$", said(capsys), re.M)
    set_faults(deployed.simulator, hold=True)
    deployed.wake(second, restarted=True)
    text = said(capsys)
    lines = text.splitlines()
    assert lines[0] == f"notes: batch {batch.batch_id} RUNNING (shard {first} started)"
    assert "  shards    1 RUNNING, 1 SETTLED" in lines
    assert re.search(r"^  items     \d+ accepted, \d+ unsettled$", text, re.M)
    assert re.search(r"^  provider  1 provider batch COLLECTED, completed (\d+)/\1$", text, re.M)
    assert re.search(r"^  provider  1 provider batch SUBMITTED, \w+ \d+/\d+$", text, re.M)
    assert re.search(r"^  tokens    \d+ in, \d+ out$", text, re.M)
    assert re.search(r"^  cost      \$0\.\d{4} \(estimate: at most \$0\.\d{4} without retries\)$", text, re.M)


def test_a_batch_that_ended_comes_with_its_report(deployed: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    report = run_unchecked(deployed)
    text = said(capsys, "--batch", str(report.batch.batch_id))
    assert "  items     20 accepted" in text
    assert "receipt (US dollars)" in text
    assert f"results.notes shows batch {report.batch.batch_id}" in text


def test_one_job_is_shown_by_its_name_and_another_name_is_answered_with_the_nearest(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = deployed.freeze()
    assert said(capsys, "--job", "notes").startswith(f"notes: batch {batch.batch_id} PLANNING")
    assert main(["status", "--job", "note"]) == 1
    assert "No batch of job 'note' is in the ledger (did you mean 'notes'?)" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["status", "--job", "notes", "--batch", "1"])


def test_rounds_dead_letters_and_the_next_look_stand_in_the_line_and_in_the_block(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.edit("job.yaml", "base_delay_s: 0", "base_delay_s: 600")
    deployed.edit("job.yaml", "shards: {count: 2}", "shards: {count: 1}")
    bad = {"match": "-4$", "status": 400, "code": "bad", "times": None}
    set_faults(deployed.simulator, line_error=[{"match": "-3$", "times": None, "status": 500}, bad])
    [shard] = deployed.plan(deployed.freeze())
    for _ in range(60):
        if "1 items wait" in str(deployed.wake(shard)):
            break
    (one,) = look(deployed.env)
    text = status.line(one)
    assert "19 of 20 items answered" in text
    assert "1 to be sent" in text
    assert "failed: 1 as input, 1 as transient" in text
    assert "1 dead letter" in text
    assert re.search(r"looks again by \d\d:\d\d:\d\d UTC", text)
    assert "everything is answered" not in text
    block = said(capsys)
    assert re.search(r"^  waits     looks again by ", block, re.M)
    assert re.search(r"^  repeated  failed: ", block, re.M)


def test_a_batch_that_does_not_exist_is_an_error_with_a_remedy(
    deployed: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--batch", "99"]) == 1
    assert "There is no batch 99" in capsys.readouterr().err


def watched(pipeline: Pipeline, out: io.StringIO, *, as_json: bool = False) -> str:
    """Watch a batch; in each pause something happens: a shard is driven to its end, and at last it is published."""
    batch = pipeline.freeze()
    shards = pipeline.plan(batch)
    events = [*(lambda shard=shard: pipeline.drive([shard]) for shard in shards)]  # type: ignore[misc]
    events += [lambda: None, lambda: publish_unchecked(pipeline, batch)]
    status.watch(pipeline.env, batch.batch_id, as_json=as_json, out=out, pause=lambda _: events.pop(0)())
    assert events == []
    return out.getvalue()


def test_where_there_is_no_terminal_each_change_is_one_line_and_the_end_of_the_batch_is_the_end(
    deployed: Pipeline,
) -> None:
    lines = watched(deployed, io.StringIO()).splitlines()
    assert [re.sub(r".*batch \d+ (\w+) .*: (\d of 2 shards settled).*", r"\1 \2", line) for line in lines] == [
        "QUEUED 0 of 2 shards settled",
        "RUNNING 1 of 2 shards settled",
        "RUNNING 2 of 2 shards settled",
        "PUBLISHED 2 of 2 shards settled",
    ]


def test_a_batch_without_a_plan_is_not_said_to_have_nothing_to_send(deployed: Pipeline) -> None:
    batch = deployed.freeze()
    (one,) = look(deployed.env, batch.batch_id)
    assert status.line(one).endswith(": not planned yet")


NAMELESS = "insert into documents values (null, '1', 'acme', 'Nameless.')"


def failing_freeze(pipeline: Pipeline, **changes: Any) -> None:
    with pytest.raises(NightmillError):
        pipeline.freeze(**changes)


def test_a_failed_freeze_that_nobody_tries_again_ends_the_view_with_its_reason_and_remedy(deployed: Pipeline) -> None:
    deployed.sql(NAMELESS)
    failing_freeze(deployed)
    (batch_id,) = deployed.sql("select batch_id from nightmill.batch")[0]
    for out in (io.StringIO(), Terminal()):
        assert status.watch(deployed.env, None, as_json=False, out=out, pause=never) == 1
        last = out.getvalue().splitlines()[-1]
        assert f"batch {batch_id} CREATED (The source returns a row whose" in last
        assert "ALERT freezing failed, and nobody tries again. Remedy: " in last
        assert f"clear freeze_snapshot of run run-1; or cancel: python -m nightmill cancel --batch {batch_id}." in last
    out = io.StringIO()
    assert status.watch(deployed.env, batch_id, as_json=True, out=out, pause=never) == 1
    assert "freezing failed" in json.loads(out.getvalue())["alerts"][0]


def test_the_view_goes_on_while_a_freeze_is_tried_again_and_while_another_batch_is_open(deployed: Pipeline) -> None:
    said = io.StringIO()
    stored = deployed.store
    deployed.store = deployed.folder / "job.yaml"  # no folder: a fault that can pass by itself
    events = [
        lambda: failing_freeze(deployed, first_try=False, last_try=True),
        lambda: pytest.fail("the view goes on after the last try"),
    ]
    failing_freeze(deployed)
    assert status.watch(deployed.env, None, as_json=False, out=said, pause=lambda _: events.pop(0)()) == 1
    assert len(events) == 1
    first, second = said.getvalue().splitlines()
    assert "CREATED (The object store" in first and "ALERT" not in first
    assert "ALERT freezing failed" in second

    deployed.store = stored
    other = deployed.freeze("run-2")
    (seen, _) = look(deployed.env)
    assert seen.batch.freezing_failed
    events = [lambda: cancel(deployed, other.batch_id)]
    assert status.watch(deployed.env, None, as_json=False, out=io.StringIO(), pause=lambda _: events.pop(0)()) == 1
    assert events == []

    assert not deployed.freeze(first_try=False).freezing_failed


def test_a_freeze_that_a_person_cleared_is_under_way_again(deployed: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed.sql(NAMELESS)
    failing_freeze(deployed)
    real = freeze.SourceSnapshot
    seen = []

    def watching(*arguments: Any) -> Any:
        seen.extend((one.batch.freezing_failed, one.batch.state_reason) for one in look(deployed.env))
        return real(*arguments)

    monkeypatch.setattr(freeze, "SourceSnapshot", watching)
    failing_freeze(deployed, first_try=False)
    assert seen == [(False, "freeze_snapshot was cleared")]


def test_scripts_get_one_json_object_per_change(deployed: Pipeline) -> None:
    changes = [json.loads(line) for line in watched(deployed, io.StringIO(), as_json=True).splitlines()]
    assert [one["state"] for one in changes] == ["QUEUED", "RUNNING", "RUNNING", "PUBLISHED"]
    assert changes[-1]["buckets"] == {"accepted": 20}
    assert float(changes[-1]["cost"]) > 0


def test_on_a_terminal_the_screen_is_drawn_anew_and_stays_within_its_size(deployed: Pipeline) -> None:
    drawn = watched(deployed, Terminal()).split("\x1b[H")
    assert drawn[0] == "\x1b[2J"
    assert len(drawn) == 6
    assert all(one.endswith("\x1b[J") for one in drawn[1:])
    small = status.screen(look(deployed.env), os.terminal_size((30, 5)))
    lines = small.removeprefix("\x1b[H").removesuffix("\x1b[J").splitlines()
    assert len(lines) == 4
    assert all(len(line.removesuffix("\x1b[K")) < 30 for line in lines)


def test_ctrl_c_ends_the_view_without_an_error(deployed: Pipeline) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    assert status.watch(deployed.env, None, as_json=False, out=io.StringIO(), pause=interrupt) == 0


def test_looking_changes_nothing_and_every_wake_up_logs_the_same_line(
    deployed: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    batch = deployed.freeze()
    first, _ = deployed.plan(batch)
    deployed.drive([first])
    assert any(
        re.match(rf"batch {batch.batch_id}: 1 of 2 shards settled; \d+ of 20 items answered", one)
        for one in caplog.messages
    )
    before = deployed.sql("select count(*), max(transition_id) from nightmill.transition")
    look(deployed.env)
    assert deployed.sql("select count(*), max(transition_id) from nightmill.transition") == before

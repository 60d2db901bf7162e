"""Each job, batch and shard of a sweep stands for itself: what fails is said, the others are done, and the run of
maintenance has failed. The faults are real ones: of the database, of a pinned contract, of output.py."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from support.pipeline import Pipeline
from support.steps import batch_of, cancel, provider_batches, set_faults, wake_until

from nightmill.cli.commands import main
from nightmill.domain.errors import Terminal, Transient
from nightmill.domain.maintenance import Action, Sweep, not_done, refuse_failed
from nightmill.domain.states import BatchState
from nightmill.jobs.contract import JobDefinition
from nightmill.orchestration.failing import as_airflow_failure
from nightmill.upkeep import maintenance


def swept(pipeline: Pipeline, sweep: Sweep, jobs: dict[str, JobDefinition] | None = None) -> list[Action]:
    live = {pipeline.live.name: pipeline.live} if jobs is None else jobs
    return maintenance.run(pipeline.env, live, pipeline.admin_dsn, sweep, dry_run=False)


def failed(done: list[Action]) -> Action:
    """What failed: one thing, for a person, and without the words of the fault, which can quote a document."""
    [one] = [one for one in done if one.failed]
    assert one.alert
    assert "CANARY" not in str(one)
    with pytest.raises(Terminal, match="1 part of this sweep failed; the others were done"):
        refuse_failed(done)
    return one


def break_writes(pipeline: Pipeline, table: str, event: str, condition: str) -> None:
    """Have the database refuse some writes with words that could quote a document."""
    pipeline.sql(
        "create function public.fault() returns trigger language plpgsql as $$ begin raise exception 'CANARY'; end $$"
    )
    pipeline.sql(
        f"create trigger fault before {event} on nightmill.{table} for each row when ({condition}) "
        "execute function public.fault()"
    )


def break_contract(pipeline: Pipeline, batch_id: int) -> None:
    pipeline.sql(
        "update nightmill.contract set folder_hash = 'another' where contract_id = "
        "(select contract_id from nightmill.batch where batch_id = %s)", batch_id,
    )  # fmt: skip


def ended(pipeline: Pipeline, number: int) -> None:
    """A batch that was cancelled when it was planned."""
    batch = pipeline.freeze(f"run-{number}")
    pipeline.plan(batch)
    cancel(pipeline, batch.batch_id)


@pytest.fixture
def three_ended(pipeline: Pipeline) -> Pipeline:
    """Three batches past their time."""
    for number in (1, 2, 3):
        ended(pipeline, number)
    pipeline.clock_offset += timedelta(days=100)
    return pipeline


def retired(pipeline: Pipeline) -> list[int]:
    return [
        row[0] for row in pipeline.sql("select batch_id from nightmill.batch where retired_at is not null order by 1")
    ]


def test_a_batch_that_retention_cannot_drop_keeps_no_other_one(three_ended: Pipeline) -> None:
    three_ended.sql("create view public.kept as select source_id from nightmill.rows_1")
    fault = failed(swept(three_ended, Sweep.RETENTION))
    assert fault.batch_id == 1
    assert "view public.kept depends on table nightmill.rows_1" in fault.what
    assert retired(three_ended) == [2, 3]
    three_ended.sql("drop view public.kept")
    refuse_failed(swept(three_ended, Sweep.RETENTION))
    assert retired(three_ended) == [1, 2, 3]


def test_a_batch_whose_note_fails_keeps_neither_another_one_nor_the_log(three_ended: Pipeline) -> None:
    break_writes(three_ended, "batch", "update", "new.batch_id = 1 and new.retired_at is not null")
    three_ended.sql(
        "insert into nightmill.maintenance_action (sweep, what, alert, done_at) "
        "values ('stuck', 'long ago', true, now() - interval '9 years')"
    )
    done = swept(three_ended, Sweep.RETENTION)
    assert failed(done).batch_id == 1
    assert retired(three_ended) == [2, 3]
    assert done[-1].what == "1 line of the log of maintenance deleted"
    assert three_ended.sql("select alert from nightmill.maintenance_action where batch_id = 1") == [(True,)]


def test_a_job_whose_pinned_rules_cannot_be_read_keeps_no_other_jobs_batch(three_ended: Pipeline) -> None:
    three_ended.edit("job.yaml", "publish:", "maintenance: {batch_days: 80}\npublish:")
    ended(three_ended, 4)
    break_contract(three_ended, 4)
    three_ended.clock_offset += timedelta(days=100)
    done = swept(three_ended, Sweep.RETENTION, jobs={})
    fault, log = (one for one in done if one.failed)
    assert "does not match its hash" in fault.what and fault.batch_id == 4
    assert log.what.startswith("the log of maintenance: ")
    assert retired(three_ended) == [1, 2, 3]


def test_a_batch_that_cannot_be_cancelled_leaves_no_other_abandoned_one_open(pipeline: Pipeline) -> None:
    first, second = pipeline.freeze("run-1"), pipeline.freeze("run-2")
    break_writes(pipeline, "batch", "update", f"new.batch_id = {first.batch_id} and new.state = 'CANCELLED'")
    pipeline.clock_offset += timedelta(days=8)
    assert failed(swept(pipeline, Sweep.ABANDONED)).batch_id == first.batch_id
    assert batch_of(pipeline, first.batch_id).state is BatchState.PLANNING
    assert batch_of(pipeline, second.batch_id).state is BatchState.CANCELLED


def sent_twice(pipeline: Pipeline) -> int:
    """A batch of two shards, each with a file at the provider, which holds them."""
    set_faults(pipeline.simulator, hold=True)
    batch = pipeline.freeze()
    for shard in pipeline.plan(batch):
        before = len(provider_batches(pipeline))
        while len([one for one in provider_batches(pipeline) if one[0] == "SUBMITTED"]) == before:
            pipeline.wake(shard)
    return batch.batch_id


def test_a_provider_batch_that_cannot_be_stopped_hides_no_other_one_that_hangs(pipeline: Pipeline) -> None:
    sent_twice(pipeline)
    other = pipeline.sql(
        "insert into nightmill.contract (job, folder_hash, files, prompt_version, output_schema_version, "
        "model_policy_version, transform_name, transform_version, validators_hash) "
        "select job, 'another', files, '', '', '', '', '', '' from nightmill.contract returning contract_id"
    )[0][0]
    second = pipeline.freeze("run-2")
    pipeline.sql("update nightmill.provider_batch set batch_id = %s where provider_batch_id = 1", second.batch_id)
    pipeline.sql("alter table nightmill.batch disable trigger guard_batch")
    pipeline.sql("update nightmill.batch set contract_id = %s where batch_id = %s", other, second.batch_id)
    pipeline.clock_offset += timedelta(hours=31)
    done = swept(pipeline, Sweep.STUCK)
    assert failed(done).what.startswith("provider batch 1: The pinned copy of job notes")
    assert any(one.what.startswith("provider batch 2 is still") and "was cancelled" in one.what for one in done)


def test_a_job_whose_output_cannot_be_loaded_hides_no_other_jobs_account(pipeline: Pipeline) -> None:
    sent_twice(pipeline)
    pipeline.sql("update nightmill.provider_batch set state = 'ABANDONED', state_reason = 'test'")
    broken = replace(pipeline.live, files=pipeline.live.files | {"output.py": b"raise RuntimeError\n"})
    done = swept(pipeline, Sweep.ORPHANS, jobs={"broken": broken, "notes": pipeline.live})
    assert failed(done).what.startswith("the account of job broken was not looked at: ")
    assert sum("it was cancelled at the provider" in one.what for one in done) == 2


def test_a_shard_that_cannot_be_wound_down_keeps_no_other_one(pipeline: Pipeline) -> None:
    batch_id = sent_twice(pipeline)
    cancel(pipeline, batch_id)
    break_writes(pipeline, "shard", "update", "new.shard_id = 1 and new.lease > old.lease")
    for _ in range(50):
        done = swept(pipeline, Sweep.CANCELLED)
        assert failed(done).what.startswith("shard 1: RaiseException (SQLSTATE P0001) at ")
        if [row[0] for row in provider_batches(pipeline)] == ["SUBMITTED", "COLLECTED"]:
            break
    else:
        raise AssertionError(provider_batches(pipeline))


def test_a_provider_batch_that_cannot_be_collected_keeps_no_other_one_of_its_shard_and_is_given_up_in_the_end(
    pipeline: Pipeline,
) -> None:
    pipeline.edit("job.yaml", "poll_interval_s: 1", "poll_interval_s: 1\n  limits: {requests_per_file: 10}")
    pipeline.edit("job.yaml", "shards: {count: 2}", "shards: {count: 1}")
    set_faults(pipeline.simulator, hold=True, hold_after=15)
    batch = pipeline.freeze()
    [shard] = pipeline.plan(batch)
    wake_until(pipeline, shard, "SUBMITTED")
    while len([one for one in provider_batches(pipeline) if one[0] == "SUBMITTED"]) < 2:
        pipeline.wake(shard)
    cancel(pipeline, batch.batch_id)
    break_writes(pipeline, "attempt", "insert", "new.provider_batch_id = 1")
    for _ in range(50):
        done = swept(pipeline, Sweep.CANCELLED)
        if [row[0] for row in provider_batches(pipeline)] == ["ENDED", "COLLECTED"]:
            break
    assert failed(swept(pipeline, Sweep.CANCELLED)).what.startswith("provider batch 1: ")
    pipeline.clock_offset += timedelta(hours=50)
    done = swept(pipeline, Sweep.CANCELLED)
    assert any("provider batch 1: given up" in one.what for one in done)
    assert [row[0] for row in provider_batches(pipeline)] == ["ABANDONED", "COLLECTED"]


def test_the_command_line_goes_on_with_the_next_sweep_and_ends_with_1(
    three_ended: Pipeline, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", three_ended.writer_dsn)
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_OWNER", three_ended.admin_dsn)
    account = {"conn_type": "generic", "host": three_ended.simulator.base_url, "password": "key"}
    monkeypatch.setenv("AIRFLOW_CONN_PROVIDER", json.dumps(account))
    monkeypatch.setenv("NIGHTMILL_OBJECT_STORE", f"file://{three_ended.store}")
    for name in ("NIGHTMILL_OBJECT_STORE_CONN_ID", "NIGHTMILL_JOBS_PATH"):
        monkeypatch.delenv(name, raising=False)
    three_ended.sql("update nightmill.batch set ended_at = ended_at - interval '100 days' where batch_id < 3")
    three_ended.sql("create view public.kept as select source_id from nightmill.rows_1")
    three_ended.sql("alter table nightmill.shard rename column wake_at to wakes_at")  # breaks two sweeps as a whole
    assert main(["maintain", "--jobs", str(three_ended.folder.parent)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said if line.startswith("FAILED")] == [
        "FAILED abandoned", "FAILED stuck", "FAILED retention",
    ]  # fmt: skip
    assert any(line.startswith("retention: batch 2: rows, items, payloads") for line in said)


def test_a_sweep_of_which_a_part_failed_fails_its_task_at_once_unless_it_may_pass() -> None:
    lasting = not_done(Sweep.ORPHANS, RuntimeError("CANARY"), unit="job a")
    passing = not_done(Sweep.ORPHANS, Transient("It is away.", "wait."), unit="job b")
    with pytest.raises(AirflowFailException), as_airflow_failure():
        refuse_failed([passing, lasting])
    with pytest.raises(AirflowException) as retried, as_airflow_failure():
        refuse_failed([passing])
    assert not isinstance(retried.value, AirflowFailException)

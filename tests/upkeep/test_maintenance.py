"""The sweeps: what hangs is found and said, what is ours and forgotten is stopped, what nobody needs is deleted."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from support.pipeline import Pipeline
from support.steps import (
    batch_of,
    counts,
    one_shard,
    paid_once,
    provider_batches,
    publish_unchecked,
    run_unchecked,
    set_faults,
    wake_until,
)

from nightmill.domain.errors import Terminal
from nightmill.domain.maintenance import Action, Sweep
from nightmill.domain.states import BatchState
from nightmill.stages import report
from nightmill.storage import batches
from nightmill.upkeep import maintenance


def swept(pipeline: Pipeline, sweep: Sweep, *, dry_run: bool = False) -> list[Action]:
    jobs = {pipeline.live.name: pipeline.live}
    return maintenance.run(pipeline.env, jobs, pipeline.admin_dsn, sweep, dry_run=dry_run)


def sent(pipeline: Pipeline) -> tuple[int, int]:
    """A batch with one file at the provider, which executes only half of it; (batch, shard)."""
    set_faults(pipeline.simulator, hold=True, hold_after=10)
    batch, shard = one_shard(pipeline)
    wake_until(pipeline, shard, "SUBMITTED")
    pipeline.wake(shard)
    return batch.batch_id, shard


def test_a_run_is_abandoned_only_past_its_grace_time_and_a_dry_run_leaves_it(pipeline: Pipeline) -> None:
    batch_id, _ = sent(pipeline)
    pipeline.clock_offset += timedelta(days=6)
    assert swept(pipeline, Sweep.ABANDONED) == []
    pipeline.clock_offset += timedelta(days=2)
    [planned] = swept(pipeline, Sweep.ABANDONED, dry_run=True)
    assert batch_of(pipeline, batch_id).state is BatchState.RUNNING
    assert pipeline.sql("select * from nightmill.maintenance_action") == []
    [done] = swept(pipeline, Sweep.ABANDONED)
    assert done == planned
    assert (done.batch_id, done.alert) == (batch_id, True)
    assert "nothing was seen of it for 192" in done.what
    assert batch_of(pipeline, batch_id).state is BatchState.CANCELLED
    assert pipeline.sql("select sweep, batch_id, alert from nightmill.maintenance_action") == [
        ("abandoned", batch_id, True)
    ]


def test_a_blocked_batch_is_abandoned_although_its_shards_look_again_every_few_minutes(pipeline: Pipeline) -> None:
    batch, shard = one_shard(pipeline)
    with pipeline.env.ledger() as conn:
        running = batches.move(conn, batch_of(pipeline, batch.batch_id), BatchState.RUNNING, "a test")
        batches.block(conn, running, "shard 99", "somebody has to look")
    pipeline.wake(shard)
    for days in (3, 3, 2):
        assert swept(pipeline, Sweep.ABANDONED) == []
        pipeline.clock_offset += timedelta(days=days)
        pipeline.sql("update nightmill.shard set wake_at = now() + make_interval(days => 30)")  # as it would be by then
    [done] = swept(pipeline, Sweep.ABANDONED)
    assert done.batch_id == batch.batch_id


def test_the_grace_time_is_read_from_the_job_folder_as_it_is_now(pipeline: Pipeline) -> None:
    batch_id, _ = sent(pipeline)
    pipeline.clock_offset += timedelta(hours=3)
    pipeline.edit("job.yaml", "publish:", "maintenance: {abandoned_after_s: 3600}\npublish:")
    [done] = swept(pipeline, Sweep.ABANDONED)
    assert done.batch_id == batch_id


def test_what_hangs_at_the_provider_is_stopped_there_and_its_rest_is_sent_again(pipeline: Pipeline) -> None:
    batch_id, shard = sent(pipeline)
    assert swept(pipeline, Sweep.STUCK) == []
    pipeline.clock_offset += timedelta(hours=31)
    [planned, *_] = swept(pipeline, Sweep.STUCK, dry_run=True)
    assert "would be cancelled at the provider" in planned.what
    found = swept(pipeline, Sweep.STUCK)
    assert found[0].alert
    assert "still in_progress 31 h after it was sent" in found[0].what
    assert "was cancelled at the provider" in found[0].what
    set_faults(pipeline.simulator)
    pipeline.drive([shard])
    assert publish_unchecked(pipeline, batch_of(pipeline, batch_id)).counts == {"accepted": 20}
    paid_once(pipeline, 20)


def test_a_shard_that_nobody_wakes_is_named(pipeline: Pipeline) -> None:
    batch_id, shard = sent(pipeline)
    pipeline.clock_offset += timedelta(hours=2)
    [found] = swept(pipeline, Sweep.STUCK)
    assert (found.batch_id, found.alert) == (batch_id, True)
    assert f"shard {shard} was due at" in found.what and "clear run_shard" in found.what


def test_a_shard_that_waits_for_room_for_a_day_is_named_with_what_it_waits_for(pipeline: Pipeline) -> None:
    batch, shard = one_shard(pipeline)
    pipeline.edit("job.yaml", "poll_interval_s: 1", "poll_interval_s: 1\n  limits: {enqueued_prompt_tokens: 100}")
    other = pipeline.freeze("run-2")
    [first] = pipeline.plan(other)
    set_faults(pipeline.simulator, hold=True)
    pipeline.wake(first, restarted=True)
    pipeline.wake(shard, restarted=True)
    pipeline.sql("update nightmill.shard set created_at = now() - interval '25 hours' where shard_id = %s", shard)
    [found] = swept(pipeline, Sweep.STUCK)
    assert (found.batch_id, found.alert) == (batch.batch_id, True)
    assert f"shard {shard} has got no answer since" in found.what
    assert "wait for the answer that another batch is getting" in found.what or "no room now" in found.what


def test_a_batch_at_the_provider_that_was_given_up_is_cancelled_and_a_foreign_one_only_reported(
    pipeline: Pipeline,
) -> None:
    sent(pipeline)
    provider_id = pipeline.sql("select provider_id from nightmill.provider_batch")[0][0]
    assert swept(pipeline, Sweep.ORPHANS) == []
    pipeline.sql("update nightmill.provider_batch set state = 'ABANDONED', state_reason = 'test'")
    with pipeline.env.provider(pipeline.live) as provider:
        line = provider.request_line("x-1", [{"role": "user", "content": "Foreign."}])
        path = Path(pipeline.store.parent, "foreign.jsonl")
        path.write_bytes(line)
        transport = provider.transport
        foreign = transport.create(transport.stage_input(path), "a-token-of-somebody-else").provider_id
    said = {one.what.split(" ")[0]: one for one in swept(pipeline, Sweep.ORPHANS, dry_run=True)}
    assert set(said) == {provider_id, foreign}
    assert "would be cancelled" in said[provider_id].what
    swept(pipeline, Sweep.ORPHANS)
    status = {one["id"]: one["status"] for one in pipeline.simulator.books()["batches"]}
    assert status[provider_id] in ("cancelling", "cancelled")
    assert status[foreign] not in ("cancelling", "cancelled")
    assert "does not know" in said[foreign].what and said[foreign].batch_id is None


def test_raw_files_go_first_then_the_batch_and_what_is_shown_or_needed_for_a_rollback_stays(
    pipeline: Pipeline,
) -> None:
    pipeline.edit("job.yaml", "publish:", "maintenance: {keep_published: 2}\npublish:")
    first, second, third = (run_unchecked(pipeline, f"run-{number}").batch.batch_id for number in (1, 2, 3))
    evidence = pipeline.store / "notes" / f"batch-{first}" / "evidence"
    assert len(list(evidence.iterdir())) == 2
    assert swept(pipeline, Sweep.RETENTION) == []
    pipeline.clock_offset += timedelta(days=31)
    [planned] = swept(pipeline, Sweep.RETENTION, dry_run=True)
    assert planned.what == "2 raw result files deleted"
    assert len(list(evidence.iterdir())) == 2
    [done] = swept(pipeline, Sweep.RETENTION)
    assert done == planned
    assert list(evidence.iterdir()) == []
    assert swept(pipeline, Sweep.RETENTION) == []
    pipeline.clock_offset += timedelta(days=60)
    assert [one.batch_id for one in swept(pipeline, Sweep.RETENTION, dry_run=True)] == [first]
    assert [one.batch_id for one in swept(pipeline, Sweep.RETENTION)] == [first]
    assert swept(pipeline, Sweep.RETENTION) == []
    for parent in ("item", "attempt", "outcome", "rows"):
        assert pipeline.sql("select to_regclass(%s)", f"nightmill.{parent}_{first}") == [(None,)]
        assert pipeline.sql("select to_regclass(%s) is not null", f"nightmill.{parent}_{second}") == [(True,)]
    assert not (pipeline.store / "notes" / f"batch-{first}").exists()
    assert (pipeline.store / "notes" / f"batch-{second}").exists()
    assert pipeline.sql("select count(*), min(batch_id) from results.notes") == [(20, third)]
    assert report.build(pipeline.env, first).counts == {"accepted": 20}  # what was reconciled stays known
    assert run_unchecked(pipeline, "run-4").counts == {"reused": 20}  # and so do the answers


def test_the_newest_batch_of_a_job_is_kept_with_its_dead_letters_and_the_one_before_is_not(pipeline: Pipeline) -> None:
    set_faults(pipeline.simulator, line_error=[{"match": "-4$", "status": 400, "code": "bad", "times": None}])
    for run_id in ("run-1", "run-2"):
        with pytest.raises(Terminal, match=r"1 gap, and job\.yaml allows none"):
            run_unchecked(pipeline, run_id)
    pipeline.clock_offset += timedelta(days=91)
    assert [one.batch_id for one in swept(pipeline, Sweep.RETENTION, dry_run=True) if "letters" in one.what] == [1]
    swept(pipeline, Sweep.RETENTION)
    assert pipeline.sql("select batch_id, code from nightmill.dead_letter") == [(2, "bad")]
    third = pipeline.freeze("run-3")
    assert pipeline.plan(third) == []
    assert counts(pipeline, third) == {"reused": 19, "dead_lettered": 1}  # and is not asked again
    # Once the job's folder is gone, nobody will replay it.
    done = maintenance.run(pipeline.env, {}, pipeline.admin_dsn, Sweep.RETENTION, dry_run=True)
    assert {one.batch_id for one in done} == {2}


def test_the_log_of_maintenance_is_forgotten_by_whole_days_after_the_jobs_time(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", "maintenance: {log_days: 30}\npublish:")
    batch_id, _ = sent(pipeline)
    for days, batch in ((29, batch_id), (32, batch_id), (366, None), (363, None)):
        pipeline.sql(
            "insert into nightmill.maintenance_action (sweep, batch_id, what, alert, done_at) "
            "values ('stuck', %s, %s, true, clock_timestamp() - make_interval(days => %s))",
            batch, f"{days} days ago", days,
        )  # fmt: skip
    [planned] = swept(pipeline, Sweep.RETENTION, dry_run=True)
    assert (planned.what, planned.batch_id) == ("2 lines of the log of maintenance deleted", None)
    assert len(pipeline.sql("select * from nightmill.maintenance_action")) == 4
    assert swept(pipeline, Sweep.RETENTION) == [planned]
    kept = pipeline.sql("select what from nightmill.maintenance_action order by action_id")
    assert kept == [("29 days ago",), ("363 days ago",), (planned.what,)]
    assert swept(pipeline, Sweep.RETENTION) == []


def test_the_log_of_a_job_whose_folder_cannot_be_read_is_kept_as_its_newest_batch_says(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", "maintenance: {log_days: 3650}\npublish:")
    batch_id, _ = sent(pipeline)
    pipeline.sql(
        "insert into nightmill.maintenance_action (sweep, batch_id, what, alert, done_at) "
        "values ('stuck', %s, 'long ago', true, clock_timestamp() - interval '1000 days')", batch_id,
    )  # fmt: skip
    assert maintenance.run(pipeline.env, {}, pipeline.admin_dsn, Sweep.RETENTION, dry_run=True) == []


def test_a_cancelled_batch_is_kept_until_it_is_wound_down(pipeline: Pipeline) -> None:
    batch_id, _ = sent(pipeline)
    pipeline.clock_offset += timedelta(days=8)
    swept(pipeline, Sweep.ABANDONED)
    pipeline.clock_offset += timedelta(days=100)
    assert swept(pipeline, Sweep.RETENTION) == []
    for _ in range(3):
        swept(pipeline, Sweep.CANCELLED)
    assert provider_batches(pipeline)[0][0] in ("COLLECTED", "ABANDONED")
    assert [one.batch_id for one in swept(pipeline, Sweep.RETENTION)] == [batch_id]
    assert counts(pipeline, batch_of(pipeline, batch_id)) == {}


def test_without_the_owners_connection_nothing_is_deleted_and_that_is_said(pipeline: Pipeline) -> None:
    [said] = maintenance.run(pipeline.env, {}, None, Sweep.RETENTION, dry_run=False)
    assert "nightmill_owner is not defined" in said.what


def test_an_alert_that_stands_is_kept_once_a_day(pipeline: Pipeline) -> None:
    for _ in range(3):
        maintenance.run(pipeline.env, {}, None, Sweep.RETENTION, dry_run=False)
    assert pipeline.sql("select count(*) from nightmill.maintenance_action") == [(1,)]


def test_a_broken_job_folder_stops_no_sweep(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NIGHTMILL_JOBS_PATH", raising=False)
    pipeline.write("job.yaml", "nonsense: true\n")
    assert maintenance.live_jobs(pipeline.folder.parent) == {}
    assert "its folder is broken" in caplog.text

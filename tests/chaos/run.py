"""One chaos run: set the faults, send the crew in, publish, settle the accounts."""

from __future__ import annotations

from support.pipeline import Pipeline
from support.steps import publish_unchecked, set_faults

from chaos.accounts import Account, settle
from chaos.crew import Crew
from chaos.weather import Storm, plan

WORKERS = 3
SHARDS = 3


def prepare(pipeline: Pipeline, items: int) -> None:
    """So many documents, files of which each shard needs a few, and retries without a pause."""
    pipeline.sql("drop table if exists documents")
    pipeline.documents([(f"doc-{n:06}", "1", f"tenant-{n % 3}", f"Text number {n}. Pages.") for n in range(items)])
    limits = f"poll_interval_s: 1\n  limits: {{requests_per_file: {max(items // (8 * SHARDS), 25)}}}"
    pipeline.edit("job.yaml", "poll_interval_s: 1", limits)
    pipeline.edit("job.yaml", "shards: {count: 2}", f"shards: {{count: {SHARDS}}}")
    retry = "retry: {max_attempts: 10, transient: 9, base_delay_s: 0}\nrepair: {attempts: 2}"
    pipeline.edit("job.yaml", "retry: {max_attempts: 3, base_delay_s: 0}", retry)
    # Two hundredths of the items are beyond help.
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0.8}\npublish:")
    pipeline.edit("job.yaml", "create_timeout_s: 5\n  quiet_period_s: 0", "create_timeout_s: 3\n  quiet_period_s: 1")
    pipeline.edit("job.yaml", "results_grace_s: 0", "results_grace_s: 3")
    pipeline.apply()


def chaos(pipeline: Pipeline, seed: int, *, seconds: float, life_s: float, strike_s: float) -> Account:
    """Run the prepared job to its end. A worker lives `life_s` and a strike comes every `strike_s` seconds on average.

    Raises AssertionError when it does not end within `seconds`, or ends with a fault that asks for a person.
    """
    set_faults(pipeline.simulator, **plan(seed))
    batch = pipeline.freeze()
    crew = Crew(pipeline, seed, WORKERS, life_s)
    crew.drive(pipeline.plan(batch), seconds, Storm(pipeline.simulator, seed, strike_s).blow)
    made = publish_unchecked(pipeline, batch)
    return settle(pipeline, batch, made, crew.kills)

"""The stages as pieces of work: each function imports and prepares, and returns what is to be measured."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from dev.bench.site import Site
from nightmill.domain.gates import GateName

Work = Callable[[], Any]

logging.disable(logging.INFO)


def freeze(site: Site, run_id: str = "run-1") -> Work:
    """Source rows to manifest and payloads."""
    from nightmill.jobs.tokens import TokenCounter
    from nightmill.stages import freeze as stage

    TokenCounter(site.job.job.provider.model).count("")  # the tokenizer's tables count as start-up
    request = stage.RunRequest(
        dag_id="nightmill_bench",
        run_id=run_id,
        first_try=True,
        dry_run=False,
        params={},
        note=None,
        requested_by=None,
        data_interval_start=None,
        data_interval_end=None,
    )
    return lambda: stage.run(site.environment, site.job, request).batch_id


def freeze_again(site: Site) -> Work:
    """The next night's freeze."""
    return freeze(site, f"run-{newest_batch(site) + 1}")


def plan(site: Site) -> Work:
    """Reuse and shards."""
    from nightmill.stages import plan as stage

    batch_id = newest_batch(site)
    return lambda: stage.run(site.environment, batch_id).batch_id


def preflight(site: Site) -> Work:
    """The price."""
    from nightmill.stages import preflight as stage

    batch_id = newest_batch(site)
    return lambda: len(stage.run(site.environment, site.job, batch_id))


def submit(site: Site) -> Work:
    """The first wake-up of every shard: render, upload, create."""
    from nightmill.stages.run_shard import wake

    shards = open_shards(site)
    return lambda: [wake(site.environment, site.job, one, restarted=True) for one in shards] and len(shards)


def collect(site: Site) -> Work:
    """The second wake-up of every shard, after the provider has ended all batches: download, validate, settle."""
    from nightmill.checks.checker import Checker
    from nightmill.stages.run_shard import Finished, wake

    shards = open_shards(site)
    Checker(site.job)
    return lambda: sum(isinstance(wake(site.environment, site.job, one, restarted=False), Finished) for one in shards)


def reconcile(site: Site) -> Work:
    """Manifest against outcomes."""
    from nightmill.stages import reconcile as stage

    batch_id = newest_batch(site)
    return lambda: str(stage.run(site.environment, site.job, batch_id).state)


def check_staging(site: Site) -> Work:
    """The checks of staged rows: Great Expectations where the job has expectations."""
    batch_id = newest_batch(site)
    return lambda: _asked(site, GateName.CHECK_STAGING, batch_id)


def publish(site: Site) -> Work:
    """The flip."""
    from nightmill.stages import publish as stage

    batch_id = newest_batch(site)
    _asked(site, GateName.COMPARE, batch_id)
    _asked(site, GateName.APPROVE, batch_id)
    return lambda: _shown(stage.run(site.environment, site.job, batch_id, "bench"))


def report(site: Site) -> Work:
    """The completion report."""
    from nightmill.stages import report as stage

    batch_id = newest_batch(site)
    return lambda: stage.run(site.environment, batch_id).counts


def _asked(site: Site, gate: GateName, batch_id: int) -> str:
    from nightmill.gates import driver, registry

    return str(driver.run(site.environment, site.job, batch_id, registry.named(gate)))


def _shown(published: Any) -> int:
    return int(published.batch_id)


def newest_batch(site: Site) -> int:
    """The batch that the last freeze made."""
    with site.environment.ledger() as conn:
        row = conn.execute("select max(batch_id) from nightmill.batch").fetchone()
    assert row is not None
    return int(row[0])


def open_shards(site: Site) -> list[int]:
    """Shards of the newest batch that are not settled."""
    from nightmill.storage import shards

    with site.environment.ledger() as conn:
        return [label.shard_id for label in shards.labels(conn, newest_batch(site))]


def wait_for_provider(site: Site, batches: int, timeout_s: float = 3600) -> None:
    """Until the local provider has ended this many batches."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if ended_batches(site) >= batches:
            return
        time.sleep(0.5)
    raise TimeoutError("the local provider did not finish")


def ended_batches(site: Site) -> int:
    """Batches that the local provider has ended so far."""
    from openai import OpenAI

    with OpenAI(base_url=site.base_url, api_key="bench") as client:
        return sum(one.status == "completed" for one in client.batches.list(limit=100))

"""The step that a provider batch rests at, for pages that say what is waited for. Nobody is asked anything."""

from __future__ import annotations

from datetime import datetime

from nightmill.domain import step_facts
from nightmill.domain.next_step import next_step
from nightmill.domain.states import BatchState
from nightmill.domain.steps import Step
from nightmill.providers.registry import adapter
from nightmill.stages.run_shard.facts_and_rules import facts_of, rules
from nightmill.storage import batches, contracts, provider_batches
from nightmill.storage.session import Connection


def step_of(conn: Connection, provider_batch_id: int, now: datetime) -> Step:
    """As the row and the pinned contract tell. Raises IllegalTransition where there is no such provider batch."""
    one = provider_batches.get(conn, provider_batch_id)
    batch = batches.get(conn, one.batch_id)
    pinned = contracts.load(conn, batch.contract_id)
    known = rules(
        pinned,
        pinned.job,
        adapter(one.adapter or pinned.job.provider.adapter).capabilities,
        account=one.account,
        winding_down=batch.state is BatchState.CANCELLED,
        sending=step_facts.Blocked(one.intent_at) if batch.state is BatchState.BLOCKED else None,
    )
    facts = facts_of(one)
    return next_step(facts, step_facts.as_last_seen(facts), known, now)

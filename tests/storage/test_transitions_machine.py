"""Random walks of a batch, its shard and a provider batch: code, database and history always agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from support.ledger import Ledger

from nightmill.domain.errors import IllegalTransition, StaleWriter
from nightmill.domain.states import (
    BATCH_EDGES,
    PROVIDER_BATCH_EDGES,
    SHARD_EDGES,
    TERMINAL_SHARD_STATES,
    BatchState,
    ProviderBatchState,
    ShardState,
)
from nightmill.storage import batches, provider_batches, shards

FACTS: dict[ProviderBatchState, dict[str, Any]] = {
    ProviderBatchState.CREATING: {"input_ref": "file"},
    ProviderBatchState.SUBMITTED: {"adopted": False},
}


def machine(ledger: Ledger) -> type[RuleBasedStateMachine]:
    """A state machine over one ledger; each walk has a batch of its own."""

    class Walk(RuleBasedStateMachine):
        @initialize()
        def begin(self) -> None:
            self.batch, (self.shard,) = ledger.running(4)
            self.shard, self.holder = ledger.taken(self.batch, self.shard)
            self.sent = ledger.intent(self.holder, range(4))
            self.stale = self.holder

        @rule(to=st.sampled_from(BatchState))
        def move_batch(self, to: BatchState) -> None:
            came_from = self.batch.blocked_from
            legal = to in BATCH_EDGES[self.batch.state] and (
                came_from is None or to is BatchState.CANCELLED or to == came_from
            )
            with ledger.writer() as conn:
                if legal:
                    self.batch = batches.move(conn, self.batch, to, "walk")
                else:
                    with pytest.raises(IllegalTransition):
                        batches.move(conn, self.batch, to, "walk")
                    conn.rollback()

        @rule(to=st.sampled_from(ShardState))
        def move_shard(self, to: ShardState) -> None:
            with ledger.writer() as conn:
                if to in SHARD_EDGES[self.shard.state] or to is self.shard.state:
                    self.shard = shards._edge(conn, self.shard, self.holder, to, "walk")
                else:
                    with pytest.raises(IllegalTransition):
                        shards._edge(conn, self.shard, self.holder, to, "walk")

        @rule(to=st.sampled_from(ProviderBatchState))
        def move_provider_batch(self, to: ProviderBatchState) -> None:
            with ledger.writer() as conn:
                facts = dict(FACTS.get(to, {}))
                if to is ProviderBatchState.SUBMITTED:
                    facts["provider_id"] = f"at-provider-{self.sent.provider_batch_id}"
                if to in PROVIDER_BATCH_EDGES[self.sent.state]:
                    self.sent = provider_batches._edge(conn, self.holder, self.sent, to, "walk", **facts)
                else:
                    with pytest.raises(IllegalTransition):
                        provider_batches._edge(conn, self.holder, self.sent, to, "walk", **facts)

        @rule()
        def take_over(self) -> None:
            self.stale = self.holder
            lease = self.shard.lease
            self.shard, self.holder = ledger.taken(self.batch, self.shard)
            assert self.shard.lease == lease + 1

        @rule()
        def write_as_a_stale_holder(self) -> None:
            if self.stale == self.holder:
                return
            with ledger.writer() as conn, pytest.raises(StaleWriter):
                shards._edge(conn, self.shard, self.stale, self.shard.state, "late")

        @rule()
        def cancel(self) -> None:
            with ledger.writer() as conn:
                before = self.batch
                self.batch = batches.cancel(conn, self.batch.batch_id, "walk")
                self.shard = shards.get(conn, self.shard.shard_id)
            if before.ended:
                assert self.batch == before
            else:
                assert self.batch.state is BatchState.CANCELLED
                assert self.batch.generation == before.generation + 1
                assert self.shard.ended
                self.stale = self.holder
                self.holder = type(self.holder)(
                    self.batch.batch_id, self.batch.generation, self.shard.shard_id, self.shard.lease
                )

        @invariant()
        def the_database_says_the_same(self) -> None:
            with ledger.writer() as conn:
                assert batches.get(conn, self.batch.batch_id) == self.batch
                stored = shards.get(conn, self.shard.shard_id)
                assert (stored.state, stored.lease) == (self.shard.state, self.shard.lease)
                assert provider_batches.of_shard(conn, self.shard.shard_id) == [self.sent]
                open_state = conn.execute(
                    "select (ended_at is not null) = %s, (select (settled_at is not null) = %s from nightmill.shard "
                    "where shard_id = %s) from nightmill.batch where batch_id = %s",
                    (
                        self.batch.ended,
                        self.shard.state is ShardState.SETTLED and self.shard.state in TERMINAL_SHARD_STATES,
                        self.shard.shard_id,
                        self.batch.batch_id,
                    ),
                ).fetchone()
                assert open_state == (True, True)

        @invariant()
        def history_is_one_unbroken_walk_over_legal_edges(self) -> None:
            rows = ledger.sql(
                "select entity, array_agg(from_state order by transition_id), array_agg(to_state order by "
                "transition_id) from nightmill.transition where batch_id = %s group by entity",
                self.batch.batch_id,
            )
            ends = {"batch": self.batch.state, "shard": self.shard.state, "provider_batch": self.sent.state}
            for entity, origins, targets in rows:
                assert origins == [None, *targets[:-1]]
                assert targets[-1] == ends[entity]

    return Walk


def test_random_walks_take_legal_edges_only_and_leave_their_history(ledger: Ledger) -> None:
    run_state_machine_as_test(
        machine(ledger),
        settings=settings(
            max_examples=8,
            stateful_step_count=14,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

"""Edges, numbers and history that the database itself refuses to the writer's login, as if typed into psql."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import errors
from support.figures import note
from support.ledger import Ledger

from nightmill.domain import states
from nightmill.domain.errors import IllegalTransition
from nightmill.domain.states import BatchState, ShardState
from nightmill.storage import batches, shards

EDGE, FALL = "NM001", "NM002"

# What a state's CHECK constraints want to see beside it.
BATCH_FACTS = (
    "ended_at = case when %(to)s in ('PUBLISHED', 'ESTIMATED', 'REJECTED', 'PARTIAL_FAILED', 'CANCELLED') "
    "then now() end, blocked_from = case when %(to)s = 'BLOCKED' then %(from)s end"
)


def put(ledger: Ledger, table: str, assignments: str, values: Any = None) -> None:
    """Set a row as the administrator with the guards off."""
    with ledger.admin() as conn:
        conn.execute("set session_replication_role = replica")
        conn.execute(f"update nightmill.{table} set {assignments}", values)


def test_every_edge_of_a_batch_that_is_not_in_the_table_is_refused(ledger: Ledger) -> None:
    ledger.frozen()
    tried = 0
    for origin in states.BatchState:
        put(ledger, "batch", f"state = %(to)s, {BATCH_FACTS}", {"to": str(origin), "from": "QUEUED"})
        back = {BatchState.QUEUED, BatchState.CANCELLED}  # a blocked batch goes back to where it came from
        legal = back if origin is BatchState.BLOCKED else states.BATCH_EDGES[origin]
        for target in states.BatchState:
            if target is not origin and target not in legal:
                values = {"to": str(target), "from": str(origin)}
                statement = f"update nightmill.batch set state = %(to)s, {BATCH_FACTS}"
                assert ledger.refused(statement, values) == EDGE, f"{origin} -> {target}"
                tried += 1
    note(f"{tried} illegal edges of a batch were refused")
    assert tried > 80


def test_every_edge_of_a_shard_and_a_provider_batch_that_is_not_in_the_table_is_refused(ledger: Ledger) -> None:
    batch, (shard,) = ledger.running()
    _, holder = ledger.taken(batch, shard)
    ledger.intent(holder, range(3))
    for table, edges, facts in (
        ("shard", states.SHARD_EDGES, "settled_at = case when %(to)s = 'SETTLED' then now() end"),
        (
            "provider_batch",
            states.PROVIDER_BATCH_EDGES,
            "input_ref = 'f', creating_at = now(), provider_id = 'p', adopted = false",
        ),
    ):
        for origin, legal in edges.items():  # type: ignore[attr-defined]
            put(ledger, table, f"state = %(to)s, {facts}", {"to": str(origin)})
            for target in edges:  # type: ignore[attr-defined]
                if target is not origin and target not in legal:
                    statement = f"update nightmill.{table} set state = %(to)s, {facts}"
                    assert ledger.refused(statement, {"to": str(target)}) == EDGE, f"{table} {origin} -> {target}"


def test_a_blocked_batch_goes_on_only_where_it_came_from(ledger: Ledger) -> None:
    batch = ledger.frozen()
    with ledger.writer() as conn:
        batch = batches.block(conn, batch, "preflight", "no budget")
    assert ledger.refused("update nightmill.batch set state = 'RUNNING', blocked_from = null") == EDGE
    with ledger.writer() as conn, pytest.raises(IllegalTransition, match="blocked from PLANNING"):
        batches.move(conn, batch, BatchState.QUEUED, "test")
    with ledger.writer() as conn:
        assert batches.unblock(conn, batch, "plan_shards").state is BatchState.BLOCKED
        assert batches.unblock(conn, batch, "preflight").state is BatchState.PLANNING


@pytest.mark.parametrize(
    ("table", "columns", "first"),
    [
        ("batch", "job, view_name, dag_id, run_id, incarnation, contract_id, state", "'j', 'v', 'd', 'x', 1, 1, "),
        ("shard", "batch_id, first_ordinal, last_ordinal, items, prompt_tokens, state", "1, 10, 11, 2, 20, "),
        (
            "provider_batch",
            "batch_id, shard_id, job, token, account, adapter, model, ordinals, requests, prompt_tokens, file_bytes, "
            "state",
            "1, 1, 'j', 't', 'a', 'openai', 'm', '{[0,3)}', 3, 30, 300, ",
        ),
    ],
)
def test_nothing_can_be_inserted_in_the_middle_of_its_life(
    ledger: Ledger, table: str, columns: str, first: str
) -> None:
    ledger.running()
    start = next(iter(states.EDGE_TABLES[table]))
    for state in states.EDGE_TABLES[table]:
        statement = f"insert into nightmill.{table} ({columns}) values ({first}'{state}')"
        if state != start:
            assert ledger.refused(statement) == EDGE
    with ledger.writer() as conn:
        conn.execute(f"insert into nightmill.{table} ({columns}) values ({first}'{start}')")
        conn.rollback()


def test_shards_of_a_batch_never_overlap_and_only_unstarted_ones_are_planned_anew(ledger: Ledger) -> None:
    batch, (shard,) = ledger.planned(10)
    overlapping = (
        "insert into nightmill.shard (batch_id, first_ordinal, last_ordinal, items, prompt_tokens) "
        f"values ({batch.batch_id}, 9, 12, 4, 40)"
    )
    assert ledger.refused(overlapping) == errors.ExclusionViolation.sqlstate
    ledger.taken(batch, shard)
    assert ledger.refused("delete from nightmill.shard") == EDGE
    with ledger.writer() as conn, pytest.raises(IllegalTransition, match="never ran"):
        shards.replace(conn, batch.batch_id, [])


def test_neither_generation_nor_lease_can_fall(ledger: Ledger) -> None:
    batch, (shard,) = ledger.running()
    ledger.taken(batch, shard)
    with ledger.writer() as conn:
        conn.execute("update nightmill.batch set generation = 5")
    assert ledger.refused("update nightmill.batch set generation = 4") == FALL
    assert ledger.refused("update nightmill.shard set lease = 0") == FALL


def test_history_cannot_be_forged(ledger: Ledger) -> None:
    call = "select nightmill.record_transition('batch', 1, 1, 'RUNNING', 'PUBLISHED', 'x', 1)"
    assert ledger.refused(call) == "42501"
    columns = "entity, entity_id, batch_id, to_state, reason"
    row = f"insert into nightmill.transition ({columns}) values ('batch', 1, 1, 'x', 'x')"
    assert ledger.refused(row) == "42501"
    assert ledger.refused("insert into nightmill.state_edge values ('batch', 'CANCELLED', 'PUBLISHED')") == "42501"
    assert ledger.refused("alter table nightmill.batch disable trigger guard_batch") == "42501"
    assert ledger.refused("set session_replication_role = replica") == "42501"


def test_each_edge_leaves_one_row_of_history_with_its_reason_and_login(ledger: Ledger) -> None:
    batch = ledger.validating()
    ledger.publish(batch)
    rows = ledger.sql(
        "select from_state, to_state, reason, made_by from nightmill.transition where entity = 'batch' "
        "order by transition_id"
    )
    writer = "nightmill_test_writer"
    assert rows == [
        (None, "CREATED", "created", writer),
        ("CREATED", "PLANNING", "manifest frozen", writer),
        ("PLANNING", "QUEUED", "planned", writer),
        ("QUEUED", "RUNNING", "started", writer),
        ("RUNNING", "VALIDATING", "reconciled", writer),
        ("VALIDATING", "PUBLISHED", "published", writer),
    ]


def test_the_code_refuses_a_stale_edge_before_the_database_must(ledger: Ledger) -> None:
    batch, (shard,) = ledger.running()
    taken, holder = ledger.taken(batch, shard)
    with ledger.writer() as conn:
        with pytest.raises(IllegalTransition, match="cannot go from RUNNING to PUBLISHED"):
            batches.move(conn, batch, BatchState.PUBLISHED, "test")
        shards._edge(conn, taken, holder, ShardState.RETRY_WAIT, "test")
        with pytest.raises(IllegalTransition, match="no longer RUNNING"):
            shards._edge(conn, taken, holder, ShardState.SETTLED, "test")
        conn.commit()
        batches.move(conn, batch, BatchState.VALIDATING, "test")
        with pytest.raises(IllegalTransition, match="no longer RUNNING"):
            batches.move(conn, batch, BatchState.VALIDATING, "test")

"""The edge tables and the page that shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import pytest

from nightmill.domain import states
from nightmill.domain.states import BATCH_EDGES, EDGE_TABLES, BatchState, ProviderBatchState, ShardState, mermaid

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "states.md"
ENUMS = {"batch": BatchState, "shard": ShardState, "provider_batch": ProviderBatchState}


def reachable(edges: Mapping[StrEnum, frozenset[StrEnum]], start: StrEnum) -> set[StrEnum]:
    found, ahead = {start}, [start]
    while ahead:
        new = edges[ahead.pop()] - found
        found |= new
        ahead += new
    return found


@pytest.mark.parametrize("entity", list(EDGE_TABLES))
def test_every_state_has_its_row_and_is_reachable_from_the_first_one(entity: str) -> None:
    edges = EDGE_TABLES[entity]
    assert set(edges) == set(ENUMS[entity])
    assert reachable(edges, next(iter(edges))) == set(ENUMS[entity])


@pytest.mark.parametrize("entity", list(EDGE_TABLES))
def test_no_state_leads_to_itself_and_an_end_is_reachable_from_everywhere(entity: str) -> None:
    edges = EDGE_TABLES[entity]
    ends = {state for state, exits in edges.items() if not exits}
    for state, exits in edges.items():
        assert state not in exits
        assert reachable(edges, state) & ends


def test_the_ends_are_the_declared_ones() -> None:
    batch = {"PUBLISHED", "ESTIMATED", "REJECTED", "PARTIAL_FAILED", "CANCELLED"}
    assert batch == states.TERMINAL_BATCH_STATES
    assert {"SETTLED", "CANCELLED"} == states.TERMINAL_SHARD_STATES
    assert {"INTENT", "CREATING", "SUBMITTED", "ENDED"} == states.LIVE_PROVIDER_BATCH_STATES


def test_every_open_batch_and_shard_can_be_cancelled_at_once() -> None:
    for state, exits in BATCH_EDGES.items():
        assert (BatchState.CANCELLED in exits) == (state not in states.TERMINAL_BATCH_STATES)
    for shard_state, shard_exits in states.SHARD_EDGES.items():
        assert (ShardState.CANCELLED in shard_exits) == (shard_state not in states.TERMINAL_SHARD_STATES)


def test_a_batch_is_blocked_only_where_it_can_come_back_to() -> None:
    enters = {state for state, exits in BATCH_EDGES.items() if BatchState.BLOCKED in exits}
    assert BATCH_EDGES[BatchState.BLOCKED] == enters | {BatchState.CANCELLED}


def test_publishing_and_failing_partially_come_after_validation_only() -> None:
    for end in (BatchState.PUBLISHED, BatchState.PARTIAL_FAILED, BatchState.REJECTED):
        assert [state for state, exits in BATCH_EDGES.items() if end in exits] == [BatchState.VALIDATING]


def test_a_provider_batch_can_be_abandoned_until_it_is_collected() -> None:
    for state in states.LIVE_PROVIDER_BATCH_STATES:
        assert ProviderBatchState.ABANDONED in states.PROVIDER_BATCH_EDGES[ProviderBatchState(state)]


def test_all_edges_lists_every_edge_once() -> None:
    assert len(states.all_edges()) == sum(len(exits) for edges in EDGE_TABLES.values() for exits in edges.values())
    assert ("batch", "CREATED", "PLANNING") in states.all_edges()


def test_the_page_on_states_shows_these_edges() -> None:
    diagrams = re.findall(r"```mermaid\n(.*?)\n```", PAGE.read_text("utf-8"), re.DOTALL)
    assert diagrams == [mermaid(entity) for entity in EDGE_TABLES]


def test_a_diagram_has_a_line_for_each_edge_the_start_and_each_end() -> None:
    for entity, edges in EDGE_TABLES.items():
        lines = mermaid(entity).splitlines()
        assert len(lines) == 2 + sum(max(len(exits), 1) for exits in edges.values())

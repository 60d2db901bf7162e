"""States of a batch, a shard and a provider batch, and the only legal edges between them.

The database restates these edges (`nightmill.state_edge`) and refuses all others, also from psql; a test holds the
two against each other, and another holds docs/reference/states.md against this page.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class BatchState(StrEnum):
    """One submission of a job."""

    CREATED = "CREATED"  # the row exists; the manifest is being frozen
    PLANNING = "PLANNING"  # the manifest is frozen; reuse and shards are being worked out
    QUEUED = "QUEUED"  # shards are cut; nothing was sent yet
    RUNNING = "RUNNING"  # at least one shard started
    VALIDATING = "VALIDATING"  # every item is settled; gates look at the staging table
    STAGED = "STAGED"  # a preview: it passed its gates, and no reader sees it; not an end
    PUBLISHED = "PUBLISHED"  # the view shows, or has shown, this batch
    ESTIMATED = "ESTIMATED"  # a dry run ended with its price
    REJECTED = "REJECTED"  # a gate or an approval said no for good
    PARTIAL_FAILED = "PARTIAL_FAILED"  # gaps that the job does not allow; the view stayed where it was
    CANCELLED = "CANCELLED"  # somebody asked for it
    BLOCKED = "BLOCKED"  # waits for a person; goes back to where it came from


class ShardState(StrEnum):
    """A contiguous range of a batch's items, driven by one mapped task."""

    QUEUED = "QUEUED"  # nobody took it yet
    RUNNING = "RUNNING"  # a task drives it, or waits for its provider batches
    RETRY_WAIT = "RETRY_WAIT"  # unsettled items wait for their next round
    SETTLED = "SETTLED"  # every item has its outcome
    CANCELLED = "CANCELLED"


class ProviderBatchState(StrEnum):
    """One set of requests at the provider. The provider's own status word is kept beside ours."""

    INTENT = "INTENT"  # its requests may be staged at the provider; nothing can have been paid
    CREATING = "CREATING"  # its create call goes out, and the provider may have taken it
    SUBMITTED = "SUBMITTED"  # the provider's id is known, created or adopted
    ENDED = "ENDED"  # the provider executes nothing more
    COLLECTED = "COLLECTED"  # every line of its results is in the ledger
    ABANDONED = "ABANDONED"  # given up with a reason; its items are free again


BATCH_EDGES: Mapping[BatchState, frozenset[BatchState]] = {
    BatchState.CREATED: frozenset({BatchState.PLANNING, BatchState.CANCELLED}),
    BatchState.PLANNING: frozenset({BatchState.QUEUED, BatchState.BLOCKED, BatchState.CANCELLED}),
    BatchState.QUEUED: frozenset(
        {BatchState.RUNNING, BatchState.VALIDATING, BatchState.ESTIMATED, BatchState.BLOCKED, BatchState.CANCELLED}
    ),
    BatchState.RUNNING: frozenset({BatchState.VALIDATING, BatchState.BLOCKED, BatchState.CANCELLED}),
    BatchState.VALIDATING: frozenset(
        {
            BatchState.PUBLISHED,
            BatchState.STAGED,
            BatchState.REJECTED,
            BatchState.PARTIAL_FAILED,
            BatchState.BLOCKED,
            BatchState.CANCELLED,
        }
    ),
    BatchState.BLOCKED: frozenset(
        {
            BatchState.PLANNING,
            BatchState.QUEUED,
            BatchState.RUNNING,
            BatchState.VALIDATING,
            BatchState.CANCELLED,
        }
    ),
    BatchState.STAGED: frozenset({BatchState.VALIDATING, BatchState.CANCELLED}),
    BatchState.PUBLISHED: frozenset(),
    BatchState.ESTIMATED: frozenset(),
    BatchState.REJECTED: frozenset(),
    BatchState.PARTIAL_FAILED: frozenset(),
    BatchState.CANCELLED: frozenset(),
}

SHARD_EDGES: Mapping[ShardState, frozenset[ShardState]] = {
    ShardState.QUEUED: frozenset({ShardState.RUNNING, ShardState.CANCELLED}),
    ShardState.RUNNING: frozenset({ShardState.SETTLED, ShardState.RETRY_WAIT, ShardState.CANCELLED}),
    ShardState.RETRY_WAIT: frozenset({ShardState.RUNNING, ShardState.CANCELLED}),
    ShardState.SETTLED: frozenset(),
    ShardState.CANCELLED: frozenset(),
}

PROVIDER_BATCH_EDGES: Mapping[ProviderBatchState, frozenset[ProviderBatchState]] = {
    ProviderBatchState.INTENT: frozenset({ProviderBatchState.CREATING, ProviderBatchState.ABANDONED}),
    ProviderBatchState.CREATING: frozenset({ProviderBatchState.SUBMITTED, ProviderBatchState.ABANDONED}),
    ProviderBatchState.SUBMITTED: frozenset({ProviderBatchState.ENDED, ProviderBatchState.ABANDONED}),
    ProviderBatchState.ENDED: frozenset({ProviderBatchState.COLLECTED, ProviderBatchState.ABANDONED}),
    ProviderBatchState.COLLECTED: frozenset(),
    ProviderBatchState.ABANDONED: frozenset(),
}

TERMINAL_BATCH_STATES = frozenset(state for state, exits in BATCH_EDGES.items() if not exits)
# What a run may end green with: readers see it, or nobody was to see anything.
GREEN_BATCH_STATES = frozenset({BatchState.PUBLISHED, BatchState.STAGED, BatchState.ESTIMATED})
TERMINAL_SHARD_STATES = frozenset(state for state, exits in SHARD_EDGES.items() if not exits)
LIVE_PROVIDER_BATCH_STATES = frozenset(state for state, exits in PROVIDER_BATCH_EDGES.items() if exits)

EDGE_TABLES: Mapping[str, Mapping[StrEnum, frozenset[StrEnum]]] = {
    "batch": BATCH_EDGES,  # type: ignore[dict-item]
    "shard": SHARD_EDGES,  # type: ignore[dict-item]
    "provider_batch": PROVIDER_BATCH_EDGES,  # type: ignore[dict-item]
}


def all_edges() -> set[tuple[str, str, str]]:
    """Every legal edge as (entity, from state, to state)."""
    return {
        (entity, str(origin), str(target))
        for entity, edges in EDGE_TABLES.items()
        for origin, targets in edges.items()
        for target in targets
    }


def mermaid(entity: str) -> str:
    """The edges of one entity as a Mermaid state diagram, for docs/reference/states.md."""
    edges = EDGE_TABLES[entity]
    lines = ["stateDiagram-v2", f"    [*] --> {next(iter(edges))}"]
    for origin, targets in edges.items():
        lines += [f"    {origin} --> {target}" for target in sorted(targets)]
        if not targets:
            lines.append(f"    {origin} --> [*]")
    return "\n".join(lines)

"""plan_shards: settles what needs no call, then cuts the rest into token-balanced shards.

Clearing it keeps the plan once anything was submitted, and plans anew before that.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Sequence

import orjson

from nightmill.checks.checker import Checker
from nightmill.checks.inputs import judged_anew
from nightmill.domain.outcomes import Accepted, CitedSpan
from nightmill.domain.shards import cut, shard_count
from nightmill.domain.states import BatchState
from nightmill.domain.wording import pluralised
from nightmill.jobs.contract import JobDefinition
from nightmill.services.environment import Environment
from nightmill.storage import (
    batches,
    contracts,
    fence,
    items,
    partitions,
    payloads,
    provider_batches,
    publications,
    reuse,
    shards,
)
from nightmill.storage.batches import Batch
from nightmill.storage.partitions import Unattached
from nightmill.storage.ranges import multirange
from nightmill.storage.session import Connection
from nightmill.storage.settlement import Settling
from nightmill.storage.shards import NewShard

log = logging.getLogger(__name__)

CHUNK = 20_000  # items settled per transaction: well under a second, so that a cancel never waits long
BRIDGED = 20  # reading past that many settled items costs as much as a new look-up


def run(env: Environment, batch_id: int) -> Batch:
    """Plan a batch. Raises StaleWriter after a cancel."""
    with env.ledger() as conn:
        batch = batches.get(conn, batch_id)
        batches.refuse_without_data(batch)
        if batch.state is BatchState.BLOCKED and batch.blocked_from == BatchState.PLANNING:
            batch = batches.move(conn, batch, BatchState.PLANNING, "plan_shards was cleared")
            conn.commit()
        replan = batch.state is BatchState.QUEUED and not provider_batches.any_of_batch(conn, batch_id)
        if batch.state is not BatchState.PLANNING and not replan:
            log.info("batch %s is %s: the plan stays as it is", batch_id, batch.state)
            return batch
        pinned = contracts.load(conn, batch.contract_id)
        reused = _reuse(env, conn, batch, pinned)
        skipped, given_up = _settle_unsendable(conn, batch, pinned.validators_hash)
        conn.commit()
        planned = _cut(conn, batch, pinned)
        conn.commit()
        log.info(
            "batch %s: %s of %s items reused, %s skipped, %s gave up before under this contract; %s",
            batch_id, reused, batch.item_count, skipped, given_up,
            pluralised(sum(shards.count_by_state(conn, batch_id).values()), "shard"),
        )  # fmt: skip
        return planned


def _reuse(env: Environment, conn: Connection, batch: Batch, pinned: JobDefinition) -> int:
    """Settle all items that have an accepted result. Answers that passed other rules are checked again first.

    The first plan fills the batch's tables beside their parents and attaches them with the outcomes' index built at
    once: half the cost of writing through the parents, and no cancel waits for it.
    """
    first_plan = not partitions.attached(conn, "outcome", batch.batch_id)
    parents = ("outcome", f"rows_{pinned.job.publish.view}")
    made = [partitions.make(conn, parent, batch.batch_id) for parent in parents] if first_plan else []
    reuse.prepare(conn)
    renewed = 0
    if not batch.options.reprocess:
        reuse.find(conn, batch.batch_id, pinned.validators_hash)
        conn.commit()
        renewed = _check_again(env, conn, batch, pinned)
    settling = Settling.of(pinned, batch.contract_id, batch.options)
    if not first_plan:
        return _settle_in_chunks(conn, batch, settling)
    tables = reuse.Partitions(*(one.table for one in made))
    last = (batch.item_count or 0) - 1
    shown = None if renewed else _shown_alike(conn, batch)  # rows that are shown have the citations of before
    settled = reuse.settle(conn, batch.batch_id, 0, last, settling, tables, shown)
    _attach(conn, batch, made)
    return settled


def _shown_alike(conn: Connection, batch: Batch) -> int | None:
    """The published batch, if the rows that it shows are those that their answers would make here: it has the same
    contract, and is no replay, whose rows were made under its parent's."""
    shown = publications.current(conn, batch.view_name)
    if shown is None:
        return None
    of_interval = (batch.data_interval_start, batch.data_interval_end)
    listed = publications.parts(conn, shown.publish_seq)
    same = next((one.batch_id for one in listed if one.interval == of_interval), shown.batch_id)
    published = batches.get(conn, same)
    alike = published.contract_id == batch.contract_id and not published.options.parent_batch
    return published.batch_id if alike else None


def _settle_in_chunks(conn: Connection, batch: Batch, settling: Settling) -> int:
    settled = 0
    for first in range(0, batch.item_count or 0, CHUNK):
        fence.enter(conn, batch.holder)
        settled += reuse.settle(conn, batch.batch_id, first, first + CHUNK - 1, settling)
        conn.commit()
    return settled


def _attach(conn: Connection, batch: Batch, made: Sequence[Unattached]) -> None:
    """Attach what was filled beside the parents. Rows are indexed when all of them are there."""
    partitions.index(conn, "outcome", batch.batch_id)
    conn.commit()
    fence.enter_exclusive(conn, batch.holder)
    for one in made:
        partitions.refuse_replaced(conn, one)
        partitions.attach(conn, one.parent, batch.batch_id)
    reuse.record_usage(conn, batch.batch_id, 0, (batch.item_count or 0) - 1)
    conn.commit()


def _check_again(env: Environment, conn: Connection, batch: Batch, pinned: JobDefinition) -> int:
    """Stored answers whose rules changed since: free of charge, and new rules are never bypassed. How many passed."""
    checker = Checker(pinned)
    documents = payloads.Documents(conn, env.payloads, batch.batch_id)
    rejected: list[int] = []
    passed: dict[int, Sequence[CitedSpan]] = {}
    for ordinal, result_id, answer in reuse.outdated(conn):
        document = documents.of(ordinal) if checker.needs_payload else {}
        verdict = checker.check_text(orjson.dumps(answer).decode(), document)
        if isinstance(verdict, Accepted):
            passed[result_id] = verdict.citations
        else:
            rejected.append(ordinal)
        if len(passed) >= CHUNK:
            reuse.note_passed(conn, passed)
            passed.clear()
    reuse.note_passed(conn, passed)
    fence.enter(conn, batch.holder)
    reuse.reject(conn, rejected)
    renewed = reuse.renew(conn, pinned.validators_hash)
    conn.commit()
    if rejected or renewed:
        log.info("%s stored answers pass today's rules, %s do not and are asked again", renewed, len(rejected))
    return renewed


def _settle_unsendable(conn: Connection, batch: Batch, validators_hash: str) -> tuple[int, int]:
    fence.enter(conn, batch.holder)
    skipped = reuse.settle_skipped(conn, batch.batch_id)
    asked_for = batch.options.reprocess or batch.options.replay is not None  # what to replay was chosen
    given_up = 0 if asked_for else reuse.settle_given_up(conn, batch.batch_id, validators_hash, judged_anew())
    return skipped, given_up


def _cut(conn: Connection, batch: Batch, pinned: JobDefinition) -> Batch:
    """Cut the unsettled items. A shard's range spans from its first to its last unsettled item."""
    ordinals, weights = array("q"), array("i")  # as wide as their columns: there are millions
    for ordinal, tokens in items.unsettled(conn, batch.batch_id):
        ordinals.append(ordinal)
        weights.append(tokens)
    config = pinned.job.shards
    count = shard_count(len(weights), sum(weights), config.count, config.target_tokens)
    new = [_shard(ordinals[part.first : part.last + 1], part.weight) for part in cut(weights, count)]
    conn.commit()
    fence.enter_exclusive(conn, batch.holder)
    shards.replace(conn, batch.batch_id, new)
    if batch.state is BatchState.QUEUED:
        return batch
    return batches.move(conn, batch, BatchState.QUEUED, f"{pluralised(len(new), 'shard')} planned")


def _shard(ordinals: Sequence[int], weight: int) -> NewShard:
    where = multirange(ordinals, bridged=BRIDGED)
    return NewShard(ordinals[0], ordinals[-1], where, len(ordinals), weight)

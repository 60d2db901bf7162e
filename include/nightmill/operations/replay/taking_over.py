"""Replay: a child batch that takes over its parent's whole manifest, sends chosen dead letters again and carries all
else as the parent settled it. It stands in for freeze_snapshot; the source is not read.

From plan_shards on the child goes the way of every batch of its job.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import orjson

from nightmill.checks.checker import Checker
from nightmill.checks.inputs import InputChecker
from nightmill.domain.errors import Terminal
from nightmill.domain.outcomes import Accepted
from nightmill.domain.states import BatchState
from nightmill.domain.wording import pluralised
from nightmill.jobs.check.definition import check_definition
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.rules.dead_letters import DeadLetterFilter, by_reason
from nightmill.jobs.rules.publishing import Publishing
from nightmill.operations.replay.refusals import refuse_parent, refuse_second_child
from nightmill.services.environment import Environment, token_counter
from nightmill.storage import (
    batches,
    contracts,
    fence,
    freezing,
    items,
    partitions,
    payloads,
    replay,
    views,
)
from nightmill.storage.batches import Batch
from nightmill.storage.replay import Child, Chosen, Tables
from nightmill.storage.session import Connection

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What a DAG run says about itself. `first_try` is False when the task was cleared or retried; Airflow raises
    `max_tries` when it is cleared, and not for a retry; after the `last_try` it does not retry it. `publish` as its
    form says; auto = as the parent's run was asked."""

    dag_id: str
    run_id: str
    first_try: bool
    parent_id: int
    choice: DeadLetterFilter
    dry_run: bool
    note: str | None
    requested_by: str | None
    last_try: bool = False
    max_tries: int = 0
    publish: str = Publishing.AUTO


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a replay would send. `carried` items keep what the parent says of them, dead letters that were not chosen
    included."""

    parent: Batch
    chosen: Chosen
    carried: int
    contract_changed: bool

    def __str__(self) -> str:
        """One line for people."""
        parts = [f"{pluralised(self.chosen.items, 'item')} of batch {self.parent.batch_id} sent again"]
        if self.chosen.dead_letters:
            parts.append(f"dead letters: {by_reason(self.chosen.dead_letters)}")
        if self.chosen.in_review:
            parts.append(f"in review: {by_reason(self.chosen.in_review)}")
        if self.chosen.unsettled:
            parts.append(f"left unsettled by the cancel: {self.chosen.unsettled:,}")
        parts.append(f"carried as they are: {self.carried:,}")
        parts.append("the job folder was edited since" if self.contract_changed else "the same contract")
        return "; ".join(parts)


def configuration(prospect: Prospect, choice: DeadLetterFilter, note: str | None) -> dict[str, Any]:
    """What to trigger the job's DAG with. Not who asks: anybody can write a configuration, and Airflow records it."""
    return {
        "parent_batch": prospect.parent.batch_id,
        "replay": choice.as_json(),
        "note": note or f"replay of batch {prospect.parent.batch_id}",
    }


def look(env: Environment, live: JobDefinition, parent_id: int | None, choice: DeadLetterFilter) -> Prospect:
    """What a replay would do; nothing is written. Without a parent: the newest batch of the job that has ended.

    Raises Terminal where it would be refused.
    """
    with env.ledger() as conn:
        chosen_id = parent_id if parent_id is not None else batches.newest_settled(conn, live.name)
        if chosen_id is None:
            raise Terminal(f"No batch of job {live.name} has ended yet.", "Wait for its first run.")
        prospect = _prospect(conn, live, chosen_id, choice)
        refuse_second_child(conn, prospect.parent)
        conn.rollback()
        return prospect


def run(env: Environment, live: JobDefinition, request: ReplayRequest) -> Batch:
    """Make a run's child batch and return it; a run that has its manifest already gets that one."""
    with env.ledger() as conn:
        batch = _open_child(conn, live, request)
        conn.commit()
        if batch.state is not BatchState.CREATED:
            batches.refuse_without_data(batch)
            log.info("batch %s has its manifest already (state %s)", batch.batch_id, batch.state)
            return batch
        with freezing.explained(env.ledger, conn, batch, last_try=request.last_try):
            return _take_over(env, conn, batch, batch.options.parent_batch or 0)


def _open_child(conn: Connection, live: JobDefinition, request: ReplayRequest) -> Batch:
    existing = None if request.first_try else batches.newest_of_run(conn, request.dag_id, request.run_id)
    if existing is not None and not freezing.opens_anew(conn, existing, request.max_tries):
        return existing
    check_definition(live)
    views.refuse_unapplied(conn, live)
    # A parent has one child: a run that is cleared after its child ended goes on from that child.
    goes_on = existing is not None and existing.ended and existing.frozen_at is not None
    parent_id = existing.batch_id if existing is not None and goes_on else request.parent_id
    replay.hold(conn, parent_id)  # retention leaves it alone until it has a child
    prospect = _prospect(conn, live, parent_id, request.choice, may_send_nothing=goes_on)
    contract_id = contracts.pin(conn, live)
    if existing is not None and not existing.ended and existing.contract_id == contract_id:
        return existing
    refuse_second_child(conn, prospect.parent)
    log.info("%s", prospect)
    return replay.create(conn, _child(conn, request, prospect.parent, contract_id))


def _child(conn: Connection, request: ReplayRequest, parent: Batch, contract_id: int) -> Child:
    planned = partitions.attached(conn, "outcome", parent.batch_id)
    asked = {} if request.publish == Publishing.AUTO else {"publish": request.publish}
    return Child(
        dag_id=request.dag_id,
        run_id=request.run_id,
        contract_id=contract_id,
        parent_id=parent.batch_id,
        dry_run=request.dry_run,
        params=parent.params
        | {
            "reprocess": False,
            "parent_batch": parent.batch_id,
            "replay": request.choice.as_json() if planned else None,  # plan_shards sends what is not settled by then
        }
        | asked,
        note=request.note,
        requested_by=request.requested_by,
        max_tries=request.max_tries,
    )


def _prospect(
    conn: Connection, live: JobDefinition, parent_id: int, choice: DeadLetterFilter, *, may_send_nothing: bool = False
) -> Prospect:
    parent = batches.get(conn, parent_id)
    refuse_parent(conn, live, parent)
    chosen = replay.choose(conn, parent, choice)
    if not chosen.items and not may_send_nothing:
        raise Terminal(
            f"Batch {parent_id} has no dead letter or item in review that matches, and nothing unsettled.",
            f"Look with `python -m nightmill dead-letters --batch {parent_id} --count` and choose by what it shows.",
        )
    changed = contracts.load(conn, parent.contract_id).folder_hash != live.folder_hash
    return Prospect(parent, chosen, (parent.item_count or 0) - chosen.items, changed)


def _take_over(env: Environment, conn: Connection, batch: Batch, parent_id: int) -> Batch:
    pinned, parent = contracts.load(conn, batch.contract_id), batches.get(conn, parent_id)
    chosen = replay.choose(conn, parent, DeadLetterFilter.of_json(batch.options.replay))
    conn.commit()
    doubtful = _send_what_fails_todays_rules(env, conn, pinned, parent)
    if batch.contract_id != parent.contract_id or parent.payload_batch_id is not None:
        _measure(env, conn, pinned, parent_id)
    parents = ("item", "attempt", "outcome", f"rows_{pinned.job.publish.view}")
    made = [partitions.make(conn, parent, batch.batch_id) for parent in parents]
    item, attempt, outcome, rows = made
    replay.fill(conn, batch.batch_id, parent_id, pinned, Tables(item.table, outcome.table, rows.table))
    items.refuse_changed_contents(conn, item.table)
    for one in (item, attempt, outcome):
        partitions.index(conn, one.parent, one.batch_id)
    conn.commit()
    fence.enter_exclusive(conn, batch.holder)
    freezing.refuse_frozen(conn, batch)
    for one in made:
        partitions.refuse_replaced(conn, one)
        if one.parent != "item":
            partitions.attach(conn, one.parent, batch.batch_id)
    replay.record_manifest(conn, batch.batch_id, parent_id, item.table)
    partitions.attach(conn, "item", batch.batch_id)
    child = batches.move(conn, batch, BatchState.PLANNING, f"took over batch {parent_id}")
    conn.commit()
    log.info(
        "batch %s replays batch %s: %s sent again, %s more because the stored answer does not pass today's rules",
        batch.batch_id, parent_id, pluralised(chosen.items, "item"), doubtful,
    )  # fmt: skip
    return child


def _send_what_fails_todays_rules(env: Environment, conn: Connection, pinned: JobDefinition, parent: Batch) -> int:
    """New rules are never bypassed: carried answers that passed others are checked, free of charge."""
    if not partitions.attached(conn, "outcome", parent.batch_id):
        return 0
    checker = Checker(pinned)
    documents = payloads.Documents(conn, env.payloads, parent.batch_id)
    failing = []
    for ordinal, answer in replay.outdated(conn, parent.batch_id, pinned.validators_hash):
        document = documents.of(ordinal) if checker.needs_payload else {}
        if not isinstance(checker.check_text(orjson.dumps(answer).decode(), document), Accepted):
            failing.append(ordinal)
    replay.send_too(conn, failing)
    conn.commit()
    return len(failing)


def _measure(env: Environment, conn: Connection, pinned: JobDefinition, parent_id: int) -> None:
    """Another prompt or model makes requests of another size: measure what is sent again."""
    measure = InputChecker(pinned, token_counter(pinned)).measure
    for ordinals, documents in replay.payload_of_sent(conn, env.payloads, parent_id):
        sizes = [measure(document) for document in documents]
        replay.measured(conn, ordinals, sizes)
    conn.commit()

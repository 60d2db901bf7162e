"""What a chaos run came to, item by item: the ledger's outcomes beside the provider's books and its fault log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from support.forced import executions, fault_log, forced_executions
from support.pipeline import Pipeline
from support.vendors import spoken

from nightmill.stages.report import Report
from nightmill.storage.batches import Batch

_REPORTED = """
select coalesce(sum(reported_prompt_tokens), 0)::bigint, coalesce(sum(reported_output_tokens), 0)::bigint,
    count(*) filter (where least(unattributed_prompt_tokens, unattributed_output_tokens) < 0)
from nightmill.provider_batch_usage
where batch_id = %s
"""


@dataclass(frozen=True)
class Account:
    """The figures of a run. `wrong` names what does not add up, item by item; an empty list is a good run.

    `forced`: executions that the fault log forces beyond the first one of each item. `amplification`: executions per
    item that was executed at all. `lost`: items without an outcome.
    """

    items: int
    accepted: int
    review: int
    dead_letters: int
    lost: int
    reexecuted_unforced: int
    amplification: float
    forced: int
    kills: int
    wrong: list[str] = field(default_factory=list)

    @property
    def figures(self) -> dict[str, Any]:
        """Without `wrong`."""
        return {name: value for name, value in asdict(self).items() if name != "wrong"}


def settle(pipeline: Pipeline, batch: Batch, made: Report, kills: int) -> Account:
    """The account of a finished run."""
    kinds = dict(pipeline.sql("select ordinal, bucket from nightmill.item_bucket where batch_id = %s", batch.batch_id))
    simulator = pipeline.simulator
    account = tally(batch.item_count or 0, kinds, forced_executions(simulator), executions(simulator), kills)
    return replace(account, wrong=[*account.wrong, *_books(pipeline, made), *_view(pipeline, account.accepted)])


def tally(
    items: int, kinds: Mapping[int, str], spoilt: Counter[int], executed: Counter[int], kills: int = 0
) -> Account:
    """Hold the outcome of each item against its spoilt and all its executions.

    An item whose answer was accepted was executed once, and once more for each answer that a fault spoilt. An item that
    was given up has only spoilt answers: each of its executions stands in the fault log.
    """
    due = {one: spoilt[one] + (kinds.get(one) == "accepted") for one in range(items)}
    odd = sorted(one for one in due.keys() | executed if executed[one] != due.get(one, 0))
    told = Counter(kinds.values())
    return Account(
        items=items,
        accepted=told["accepted"],
        review=told["in_review"],
        dead_letters=told["dead_lettered"],
        lost=items - sum(told[kind] for kind in ("accepted", "in_review", "dead_lettered")),
        reexecuted_unforced=sum(max(executed[one] - due.get(one, 0), 0) for one in odd),
        amplification=round(executed.total() / max(len(executed), 1), 4),
        forced=sum(max(count - 1, 0) for count in due.values()),
        kills=kills,
        wrong=[
            *(f"item {one} ({kinds.get(one)}): executed {executed[one]} times, not {due.get(one, 0)}" for one in odd),
            *(f"item {one} has no outcome" for one in range(items) if one not in kinds),
        ],
    )


def faults_met(pipeline: Pipeline) -> Counter[str]:
    """How often each fault struck, by its name and what tells it from others of that name."""
    return Counter(
        " ".join(str(one[part]) for part in ("fault", "kind", "code", "route", "status") if part in one)
        for one in fault_log(pipeline.simulator)
    )


def _books(pipeline: Pipeline, made: Report) -> list[str]:
    """The ledger's tokens are those in the provider's books: as each batch reports them, and as the report sums up
    attempts and what none explains. The report guesses where a batch reports nothing, and then is not comparable."""
    usage = pipeline.simulator.books(summary=True)["usage"]
    paid = (usage["prompt_tokens"], usage["completion_tokens"])
    [(prompt, completion, overdrawn)] = pipeline.sql(_REPORTED, made.batch.batch_id)
    wrong = []
    if spoken(pipeline).reports_usage and (prompt, completion) != paid:
        wrong.append(f"tokens: batches report {prompt} and {completion}, the provider's books have {paid}")
    if overdrawn:
        wrong.append(f"tokens: in {overdrawn} provider batches the attempts have more than the batch")
    if not made.spent.estimated and (made.spent.prompt, made.spent.completion) != paid:
        wrong.append(f"tokens: the report says {made.spent}, the provider's books have {paid}")
    return wrong


def _view(pipeline: Pipeline, accepted: int) -> list[str]:
    [(rows,)] = pipeline.sql("select count(*) from results.notes")
    return [] if rows == accepted else [f"the view shows {rows} rows of {accepted} accepted items"]

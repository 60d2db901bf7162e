"""What a person reads who is asked to approve a batch: numbers and names of rules, no text of any document."""

from __future__ import annotations

from dataclasses import dataclass

from nightmill.domain.gates import GateName
from nightmill.domain.pricing import price_on
from nightmill.domain.receipt import receipt
from nightmill.domain.wording import dollars, pluralised
from nightmill.gates import approve
from nightmill.gates.port import TOLD, Waiting
from nightmill.jobs.settings.gate_settings import OnTimeout
from nightmill.storage import batches, contracts, gates, prices, publications, usage
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

_AT_THE_END = {
    OnTimeout.WAIT: "the task fails, and clearing it asks again",
    OnTimeout.REJECT: "it counts as rejected",
    OnTimeout.APPROVE: "it counts as approved",
}


@dataclass(frozen=True, slots=True)
class Question:
    """Headline and body (Markdown)."""

    subject: str
    body: str


def of(conn: Connection, batch: Batch, waiting: Waiting, page: str) -> Question:
    """The question about a batch; `page` is the address of its page in the console."""
    shown = publications.current(conn, batch.view_name)
    counts = batches.bucket_counts(conn, batch.batch_id)
    gaps = batches.gaps_by_code(conn, batch.batch_id)
    preview = f" It has a limit of {batch.options.limit:,} rows." if batch.options.limit else ""
    lines = [
        f"**Now:** {publications.readers_see(batch.view_name, shown)}.{preview}",
        f"**Items:** {batch.item_count or 0:,} planned; {_listed(sorted(counts.items()))}",
        f"**Gaps:** {_listed(gaps) if gaps else 'none'}",
        f"**Cost:** {_cost(conn, batch)}",
        *_verdicts(conn, batch),
        f"**Until:** {waiting.what_for.removeprefix('an approval, until ')}; "
        f"then {_AT_THE_END[OnTimeout(waiting.details['on_timeout'])]}.",
        *_after_a_no(waiting),
        f"As of {waiting.details['asked_at'][:16].replace('T', ' ')} UTC. Airflow goes on showing this text where the "
        f"task is cleared; [the batch in the console]({page}) and the task's newest log tell what is asked then.",
    ]
    return Question(f"Show batch {batch.batch_id} of {batch.job} in results.{batch.view_name}?", "\n\n".join(lines))


def _after_a_no(waiting: Waiting) -> list[str]:
    if not waiting.details.get(approve.REVOKES):
        return []
    return ["**If you reject it:** its answers are not reused, so that the next run asks for them again, and pays."]


def _verdicts(conn: Connection, batch: Batch) -> list[str]:
    found = [one for one in gates.newest(conn, batch.holder) if one.gate is not GateName.APPROVE]
    told = [f"- {line}" for one in found for line in one.details.get(TOLD, ())]
    words = f"**Gates:** {', '.join(f'{one.gate} {one.word}' for one in found)}"
    return [words, "\n".join(told)] if told else [words]


def _cost(conn: Connection, batch: Batch) -> str:
    model = contracts.load(conn, batch.contract_id).job.provider.model
    price = price_on(prices.of_model(conn, model), model, batch.created_at.date())
    spent, reused = usage.spent(conn, batch.batch_id), usage.reused(conn, batch.batch_id)
    paid = receipt(price, spent, reused).paid if price else None
    return f"{dollars(paid)} for {pluralised(spent.requests, 'request')}"


def _listed(rows: list[tuple[str, int]]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in rows)

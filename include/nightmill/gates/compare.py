"""The gate compare: the staged batch against what readers see and against known answers, slice by slice.

Limits are read live, so that one that is too strict can be loosened and the task cleared. Details hold numbers and
names, never a text of a document or an answer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from nightmill.domain.comparison import ALL
from nightmill.domain.gates import GateName
from nightmill.domain.keys import content_hash
from nightmill.domain.wording import pluralised
from nightmill.gates import baseline, comparing
from nightmill.gates.compare_verdict import accuracy, lost_share
from nightmill.gates.comparing import Comparison
from nightmill.gates.port import TOLD, Details, Gate, Look, Passed, Refused, Verdict
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.settings.gate_settings import Compare
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.storage import comparison, publications

log = logging.getLogger(__name__)

MOST_SAID = 3  # broken limits in a message; all are recorded


def configured(live: JobDefinition) -> bool:
    """Whether the job compares. One by interval does in any case: a night that lost most of its rows is no night."""
    return live.job.compare is not None or live.job.publish.mode is PublishMode.BY_INTERVAL


def evaluate(look: Look) -> Verdict:
    """Compare, in one snapshot on a connection of its own."""
    batch, job = look.batch, look.live.job
    settings = job.compare or _NO_LIMITS
    with look.env.ledger() as conn:
        comparing.snapshot(conn)
        shown, beside = publications.current(conn, batch.view_name), baseline.of(conn, batch)
        sides = comparison.of_view(conn, batch, beside)
        answers = job.gold if job.compare is not None else None
        made = comparing.compare(look.env, conn, _judged(settings, look), answers, sides)
    broken = [*_lost(look, made), *map(str, made.findings)]
    details: Details = {
        baseline.KEY: beside,
        "publication": shown.publish_seq if shown else None,
        "preview": batch.is_preview,
        TOLD: list(_told(made)),
        "broken": broken,
        **made.details,
    }
    for one in broken:
        log.warning("batch %s: %s", batch.batch_id, one)
    hashed = content_hash({"compare": settings.model_dump(mode="json"), "max_loss": job.publish.max_loss}).hex()[:16]
    return Refused(_why(broken), _REMEDY, details, hashed) if broken else Passed(details, hashed)


def _judged(settings: Compare, look: Look) -> Compare:
    """A preview may be of a few rows: what it lacks is judged when somebody wants to publish it. In by_key nothing is
    gone: what a batch does not carry stays as it is shown."""
    if look.batch.is_preview or look.live.job.publish.mode is PublishMode.BY_KEY:
        return settings.model_copy(update={"max_gone_share": None})
    return settings


def _lost(look: Look, made: Comparison) -> list[str]:
    """What publish.max_loss says of an interval."""
    publish, whole = look.live.job.publish, made.parts[ALL]
    lost = lost_share(whole.kept, whole.rows_before)
    if publish.mode is not PublishMode.BY_INTERVAL or look.batch.is_preview or lost <= publish.max_loss:
        return []
    return [
        f"{lost:.1%} of the {whole.rows_before:,} rows that are shown of this interval are gone "
        f"(publish.max_loss is {publish.max_loss:.1%})"
    ]


def _told(made: Comparison) -> Iterator[str]:
    """What a person reads who is asked to approve the batch."""
    whole, old = made.parts[ALL], made.old
    if old is None:
        yield f"{pluralised(whole.added, 'row')}; nothing is shown so far"
    else:
        yield (
            f"beside batch {old.batch_id}: {pluralised(whole.added, 'row')} added, {whole.gone:,} not in this batch, "
            f"{whole.changed:,} of {whole.kept:,} changed"
        )
    for rule in made.rules:
        now = accuracy(rule, whole.scores.get(rule.name), made.confidence)
        then = accuracy(rule, whole.before.get(rule.name), made.confidence)
        if now is not None:
            before = f", {then.value:.1%} before" if then is not None else ""
            yield f"accuracy of {rule.name}: {now.value:.1%} of {now.items:,}{before}"
    yield from (f"broken: {one}" for one in made.findings[:MOST_SAID])


def _why(broken: Sequence[str]) -> str:
    said, more = broken[:MOST_SAID], len(broken) - MOST_SAID
    rest = f"; and {more} more" if more > 0 else ""
    return f"{pluralised(len(broken), 'limit')} of compare broken: {'; '.join(said)}{rest}"


_NO_LIMITS = Compare(max_gone_share=None, max_accuracy_drop=None, slices=())  # rows are counted, and that is all
_REMEDY = (
    "Look at the page Compare of this batch. Where the change is not meant, correct the prompt or the model and "
    "trigger a new run; where it is, loosen `compare` (or publish.max_loss) in job.yaml and clear compare with its "
    "downstream tasks."
)

GATE = Gate(GateName.COMPARE, configured, evaluate)

"""The gate compare: the staged batch against what readers see and against known answers, slice by slice.

Limits are read live, so that one that is too strict can be loosened and the task cleared. Details hold numbers and
names, never a text of a document or an answer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from nightmill.domain.compare_verdict import accuracy
from nightmill.domain.comparison import ALL
from nightmill.domain.contract import JobDefinition
from nightmill.domain.gate_settings import Compare
from nightmill.domain.gates import GateName
from nightmill.domain.keys import content_hash
from nightmill.domain.wording import counted
from nightmill.gates import baseline, comparing
from nightmill.gates.comparing import Comparison
from nightmill.gates.port import TOLD, Details, Gate, Look, NotConfigured, Passed, Refused, Verdict
from nightmill.storage import comparison, publications

log = logging.getLogger(__name__)

MOST_SAID = 3  # broken limits in a message; all are recorded


def configured(live: JobDefinition) -> bool:
    """Whether the job compares."""
    return live.job.compare is not None


def evaluate(look: Look) -> Verdict:
    """Compare, in one snapshot on a connection of its own."""
    settings = look.live.job.compare
    if settings is None:
        return NotConfigured()
    batch = look.batch
    judged = _of_preview(settings) if batch.is_preview else settings
    with look.env.ledger() as conn:
        comparing.snapshot(conn)
        shown = publications.current(conn, batch.view_name)
        sides = comparison.of_view(batch.view_name, batch.batch_id, shown.batch_id if shown else None)
        made = comparing.compare(look.env, conn, judged, look.live.job.gold, sides)
        details: Details = {
            baseline.KEY: baseline.of(conn, batch),
            "publication": shown.publish_seq if shown else None,
            "preview": batch.is_preview,
            TOLD: list(_told(made)),
            **made.details,
        }
    for finding in made.findings:
        log.warning("batch %s: %s", batch.batch_id, finding)
    hashed = content_hash(settings.model_dump(mode="json")).hex()[:16]
    if not made.findings:
        return Passed(details, hashed)
    return Refused(_why(made), _REMEDY, details, hashed)


def _told(made: Comparison) -> Iterator[str]:
    """What a person reads who is asked to approve the batch."""
    whole, old = made.parts[ALL], made.old
    if old is None:
        yield f"{counted(whole.added, 'row')}; nothing is shown so far"
    else:
        yield (
            f"beside batch {old.batch_id}: {counted(whole.added, 'row')} added, {whole.gone:,} gone, "
            f"{whole.changed:,} of {whole.kept:,} changed"
        )
    for rule in made.rules:
        now = accuracy(rule, whole.scores.get(rule.name), made.confidence)
        then = accuracy(rule, whole.before.get(rule.name), made.confidence)
        if now is not None:
            before = f", {then.value:.1%} before" if then is not None else ""
            yield f"accuracy of {rule.name}: {now.value:.1%} of {now.items:,}{before}"
    yield from (f"broken: {one}" for one in made.findings[:MOST_SAID])


def _of_preview(settings: Compare) -> Compare:
    """A preview may be of a few rows: what it lacks is judged when somebody wants to publish it."""
    return settings.model_copy(update={"max_gone_share": None})


def _why(made: Comparison) -> str:
    said = [str(one) for one in made.findings[:MOST_SAID]]
    more = len(made.findings) - len(said)
    return (
        f"{counted(len(made.findings), 'limit')} of compare broken: {'; '.join(said)}"
        f"{f'; and {more} more' if more else ''}"
    )


_REMEDY = (
    "Look at the page Compare of this batch. Where the change is not meant, correct the prompt or the model and "
    "trigger a new run; where it is, loosen `compare` in job.yaml and clear compare with its downstream tasks."
)

GATE = Gate(GateName.COMPARE, configured, evaluate)

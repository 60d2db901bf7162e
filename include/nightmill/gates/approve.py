"""The gate approve: a person says yes or no in Airflow, or the time-out says it for them.

Asking and answering are two looks at the batch. The first one leaves the batch BLOCKED, with the question in its
verdict; the answer counts only while what was asked about is still so. A task that Airflow tries again finds what
exists: a question goes on with the time that it has left, an answer is not asked for twice. A clear asks anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from nightmill.domain.gates import GateName, Word
from nightmill.domain.keys import content_hash
from nightmill.gates import baseline, basis
from nightmill.gates.port import Details, Gate, Look, Passed, Refused, Rejected, Verdict, Waiting
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.settings.gate_settings import Approve, OnTimeout
from nightmill.storage import gates
from nightmill.storage.gates import Verdict as Recorded

_SOON = timedelta(seconds=5)  # between the clocks of a worker and of Airflow's scheduler
REVOKES = "revoke_rejected"  # of a question's details: what a person was told that a no would do
ASK_AGAIN = "Clear approve: the person is asked again."


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody answered."""

    approved: bool
    by: str
    at: datetime
    reason: str | None = None


def configured(live: JobDefinition) -> bool:
    """Whether the job asks a person."""
    return live.job.approve is not None


def question(before: Sequence[Gate], clears: int = 0) -> Gate:
    """The gate as its task meets it first. `before` are the gates that must be open; `clears` is Airflow's max_tries,
    which a clear raises and a retry does not."""

    def evaluate(look: Look) -> Verdict:
        return _closed(look, before) or _standing(look, clears) or _ask(look, clears)

    return Gate(GateName.APPROVE, configured, evaluate, for_previews=False)


def answered(answer: Answer) -> Gate:
    """The gate when the answer is there: also where job.yaml has lost its `approve` since."""

    def evaluate(look: Look) -> Verdict:
        asked = _newest(look)
        if asked is None or asked.details.get(basis.KEY) != basis.of(look.conn, look.batch):
            why = "the answer was given for verdicts or for a baseline that have changed since"
            return Refused(why, ASK_AGAIN, {}, "")
        if asked.word is not Word.WAITING:
            return _again(asked)
        details = asked.details | {"answered_at": answer.at.isoformat()}
        if answer.approved:
            return Passed(details | {"note": answer.reason}, asked.config_hash, by=answer.by)
        why, revoke = answer.reason or "no reason given", details.get(REVOKES, False)
        return Rejected(answer.by, why, details, asked.config_hash, revoke)

    return Gate(GateName.APPROVE, lambda _live: True, evaluate, for_previews=False)


def _closed(look: Look, before: Sequence[Gate]) -> Refused | None:
    """Nobody is asked about a batch that publish would refuse whatever the answer is."""
    newest = {one.gate: one.word for one in gates.newest(look.conn, look.batch.holder)}
    closed = [one.name for one in before if one.applies(look.live) and newest.get(one.name) is not Word.PASSED]
    if not closed:
        return None
    why = f"nobody was asked: {', '.join(closed)} has no recorded pass in generation {look.batch.generation}"
    return Refused(why, f"Clear {closed[0].task} and its downstream tasks.", {}, "")


def _standing(look: Look, clears: int) -> Verdict | None:
    """What a try of before has left; None where the person must be asked anew."""
    last = _newest(look)
    if last is None or last.details.get(basis.KEY) != basis.of(look.conn, look.batch):
        return None
    if clears > last.details.get("clears", 0):
        return None
    if last.word is Word.PASSED:
        return _again(last)
    if last.word is not Word.WAITING:
        return None
    until = datetime.fromisoformat(last.details["until"])
    if until - _SOON > look.env.now():
        return Waiting(_what_for(until), last.details, last.config_hash)
    return _timed_out(last, f"nobody answered until {until:%Y-%m-%d %H:%M} UTC")


def _timed_out(last: Recorded, why: str) -> Verdict:
    """What the job wants then, as the question said."""
    by = f"the time-out (approve.on_timeout: {last.details['on_timeout']})"
    match OnTimeout(last.details["on_timeout"]):
        case OnTimeout.APPROVE:
            return Passed(last.details, last.config_hash, by=by)
        case OnTimeout.REJECT:
            return Rejected(by, why, last.details, last.config_hash)
        case OnTimeout.WAIT:
            return Refused(why, ASK_AGAIN, last.details, last.config_hash)


def _ask(look: Look, clears: int) -> Waiting:
    settings = look.live.job.approve or Approve()
    now = look.env.now()
    until = now + timedelta(hours=settings.timeout_h)
    details: Details = {
        basis.KEY: basis.of(look.conn, look.batch),
        baseline.KEY: baseline.of(look.conn, look.batch),
        "asked_at": now.isoformat(),
        "until": until.isoformat(),
        "on_timeout": str(settings.on_timeout),
        "clears": clears,
        REVOKES: settings.revoke_rejected,
    }
    return Waiting(_what_for(until), details, content_hash(settings.model_dump(mode="json")).hex()[:16])


def _newest(look: Look) -> Recorded | None:
    found = gates.newest(look.conn, look.batch.holder)
    return next((one for one in found if one.gate is GateName.APPROVE), None)


def _again(last: Recorded) -> Verdict:
    """The answer that is recorded already."""
    if last.word is Word.PASSED:
        return Passed(last.details, last.config_hash, by=last.decided_by, recorded=True)
    return Refused("the question is closed", ASK_AGAIN, last.details, last.config_hash)


def _what_for(until: datetime) -> str:
    return f"an approval, until {until:%Y-%m-%d %H:%M} UTC"


def left(waiting: Waiting, now: datetime) -> timedelta:
    """How long an answer is still waited for."""
    return datetime.fromisoformat(waiting.details["until"]) - now

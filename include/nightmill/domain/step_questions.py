"""What a person is asked about one provider batch: what is wrong, how to decide, and the command that decides."""

from __future__ import annotations

from datetime import datetime, timedelta

from nightmill.domain.snapshots import Unclear
from nightmill.domain.step_facts import Call, Facts, Refused, Rules
from nightmill.domain.steps import AskPerson
from nightmill.domain.wording import pluralised

UNKNOWN_STATUS = ", which nightmill does not know,"  # in the batch's reason while it waits for such a status


def asked_of_a_call(facts: Facts, seen: Refused) -> AskPerson:
    """A call that the provider refuses until somebody acts."""
    return AskPerson(seen.cause, seen.remedy, _cancel(facts))


def breaker_open(facts: Facts, cause: str, remedy: str) -> AskPerson:
    """The breaker of its batch stopped the sending."""
    return AskPerson(cause, remedy, _cancel(facts))


def never_unblocked(facts: Facts, since: datetime) -> AskPerson:
    """Nobody cleared what blocked the batch."""
    return AskPerson(
        f"{facts.name} was not sent: the batch is BLOCKED since {since:%Y-%m-%d %H:%M} UTC.",
        "Clear the task that blocked it, then this one; `python -m nightmill status` says which and why. To stop for "
        f"good: `{_cancel(facts)}`.",
        "python -m nightmill status",
    )


def other_account(facts: Facts, rules: Rules) -> AskPerson:
    """A lost create of an account that the connection does not have any more."""
    return AskPerson(
        f"{facts.name} was sent by another account or key than connection {rules.conn_id!r} has now, so not finding it "
        "proves nothing.",
        "Put the former account back into the connection and clear this task; or wait until the batch has ended there "
        "and trigger a new run.",
        _lost_create(facts),
    )


def cannot_tell(facts: Facts, seen: Unclear) -> AskPerson:
    """A lost create that the provider's listing can neither show nor rule out."""
    if seen.candidates:
        where = f"Look at {', '.join(one.provider_id for one in seen.candidates)} there: one of them may be it."
    elif facts.input_ref is not None:
        where = f"Look there for a batch made from {facts.input_ref} or with the token {facts.token}."
    else:
        where = (
            f"Look there for a batch of {pluralised(facts.requests, 'request')} with the token {facts.token}, or whose "
        )
        where += "ids begin with it."
    return AskPerson(
        f"The reply to the create of provider batch {facts.provider_batch_id} was lost, and whether the provider took "
        f"it cannot be told: {seen.why}.",
        f"{where} If there is one: `{_lost_create(facts)} --taken-as ID`; if there is none: the same with "
        "`--not-taken`. Then clear this task.",
        _lost_create(facts),
    )


def overdue(facts: Facts, rules: Rules) -> AskPerson:
    """The provider has it for longer than it can take."""
    return AskPerson(
        f"{facts.name} ({facts.provider_id}) has not ended {_hours(rules.late_after)} after its window.",
        "Ask the provider, or cancel the batch there: what it finished is collected. Clear this task to wait on.",
        _cancel(facts),
    )


def unknown_status(facts: Facts, since: datetime, *, look_again: datetime) -> AskPerson:
    """A status that stays unknown. It goes on by itself once it is known."""
    return AskPerson(
        f"The provider reports the status {facts.raw_status!r} for batch {facts.provider_id}{UNKNOWN_STATUS} since "
        f"{since:%Y-%m-%d %H:%M} UTC.",
        "Look at it there; it goes on by itself once the status is known.",
        _cancel(facts),
        look_again,
    )


def answers_unnamed(facts: Facts, rules: Rules) -> AskPerson:
    """Paid answers lie in results that the provider does not name. Asking for them again is a person's decision."""
    answers = pluralised(facts.answered or 0, "answer")
    return AskPerson(
        f"{facts.name} ({facts.provider_id}) ended with {answers}, which are paid for, and names no results that hold "
        "them.",
        f"Ask the provider for the results, then clear this task; {_hours(rules.late_after)} after its window, its "
        "requests count as lost and clearing this task sends them again.",
        _cancel(facts),
    )


def results_gone(facts: Facts, until: datetime) -> AskPerson:
    """The provider keeps results for a time only, and it is over."""
    return AskPerson(
        f"{facts.name} ({facts.provider_id}) has results that the provider kept until {until:%Y-%m-%d %H:%M} UTC and "
        "does not give any more. What they held was paid for.",
        f"Ask the provider for them and clear this task. Otherwise `{_cancel(facts)}`: a new run asks for its items "
        "again, and pays for them again.",
        _cancel(facts),
    )


def out_of_reach(facts: Facts, call: Call, *, look_again: datetime) -> AskPerson:
    """The provider has given no answer for hours. It is tried again all the same."""
    return AskPerson(
        f"The provider has given no answer to the call `{call}` of provider batch {facts.provider_batch_id} since "
        f"{facts.since:%Y-%m-%d %H:%M} UTC.",
        f"Check the connection and the provider's own status page. It is tried again; to stop for good: "
        f"`{_cancel(facts)}`.",
        "python -m nightmill doctor",
        look_again,
        blocks=False,
    )


def not_wound_down(facts: Facts, *, look_again: datetime) -> AskPerson:
    """A batch of a cancelled run that the provider does not end."""
    return AskPerson(
        f"provider batch {facts.provider_batch_id}: given up waiting, look at {facts.provider_id} at the provider; it "
        "is read once it has ended",
        "Cancel it at the provider.",
        "python -m nightmill maintain",
        look_again,
        blocks=False,
    )


def _cancel(facts: Facts) -> str:
    return f"python -m nightmill cancel --batch {facts.batch_id}"


def _lost_create(facts: Facts) -> str:
    return f"python -m nightmill lost-create --provider-batch {facts.provider_batch_id}"


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:.0f} h"

"""How long to wait for a provider, and until when at the latest."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import assert_never

from nightmill.domain.capabilities import Lookup
from nightmill.domain.step_facts import SECOND, Facts, Rules, Unreachable
from nightmill.domain.step_questions import out_of_reach
from nightmill.domain.steps import AskPerson, Wait, WaitsFor


def until(what: WaitsFor, now: datetime, pause: timedelta, latest: datetime, *, sends_nothing: bool = False) -> Wait:
    """Look again after the pause, or right after the latest time: the step is another one then."""
    return Wait(what, min(now + pause, latest + SECOND), latest, sends_nothing)


def wait_for_answer(what: WaitsFor, rules: Rules, now: datetime, retry_after_s: float | None, latest: datetime) -> Wait:
    """Where the provider asks to be left alone, it is left alone so long, even beyond the latest time."""
    pause = _pause(rules, retry_after_s)
    latest = max(latest, now + pause) if retry_after_s else latest
    return until(what, now, pause, latest, sends_nothing=True)


def without_answer(facts: Facts, seen: Unreachable, rules: Rules, now: datetime) -> Wait | AskPerson:
    """It is tried again however long it takes; from the deadline on, a person knows of it."""
    deadline = facts.since + rules.slack
    if now <= deadline:
        return wait_for_answer(WaitsFor.PROVIDER, rules, now, seen.retry_after_s, deadline)
    return out_of_reach(facts, seen.call, look_again=now + _pause(rules, seen.retry_after_s))


def looked_for_until(facts: Facts, rules: Rules) -> datetime:
    """The end of looking for a create call, whatever the provider can show."""
    created = facts.creating_at or facts.intent_at
    match rules.capabilities.lookup:
        case Lookup.NONE:
            return created + rules.absent_after
        case Lookup.FINGERPRINT:
            return max(rules.window_end(facts) + rules.slack, created + rules.absent_after + rules.unproven)
        case Lookup.METADATA | Lookup.NAME:
            return created + rules.absent_after + rules.unproven
        case _:
            assert_never(rules.capabilities.lookup)


def _pause(rules: Rules, retry_after_s: float | None) -> timedelta:
    asked = timedelta(seconds=min(retry_after_s or 0.0, rules.longest_pause.total_seconds()))
    return max(rules.poll_interval, asked)

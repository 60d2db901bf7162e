"""A provider that may be slow, lose replies and show old news, and that never lies; and a shard that does what
next_step says. Neither has a database, a network or a clock of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from nightmill.domain.capabilities import Input, Lookup
from nightmill.domain.next_step import next_step
from nightmill.domain.snapshots import Absent, BatchStatus, Unclear
from nightmill.domain.states import ProviderBatchState
from nightmill.domain.step_facts import (
    Call,
    Facts,
    Fetched,
    Rules,
    Seen,
    Unanswered,
    Unreachable,
)
from nightmill.domain.steps import AskPerson, Collect, Create, Done, GiveUp, LookUp, Poll, StageInput, Step, Wait
from support.step_examples import shown

ENDLESS = 5_000  # looks at one provider batch; more is a loop


class Reply(StrEnum):
    """What becomes of a create call."""

    TAKEN = "taken"
    TAKEN_UNSAID = "taken, and the reply is lost"
    TAKEN_LATE = "on its way for a while, and the reply is lost"
    LOST = "lost on its way"


@dataclass(frozen=True, slots=True)
class Plan:
    """What one create meets. Spans count from the create call, `listed_after` and the rest from when it was taken."""

    reply: Reply = Reply.TAKEN
    on_its_way: timedelta = timedelta()
    listed_after: timedelta = timedelta()
    runs_after: timedelta = timedelta()
    ends_after: timedelta = timedelta(hours=1)
    refused: bool = False
    unknown: bool = False  # while it runs, its first half is shown as a status that nobody knows
    unreachable: bool = False  # the first poll gets no answer
    missing: int = 0  # lines
    late_lines: bool = False  # they come within the grace; otherwise never
    rival: bool = False  # somebody else's batch looks like it


@dataclass
class Taken:
    """A batch that the provider has."""

    at: datetime
    token: str
    items: frozenset[int]
    plan: Plan
    over: bool = False  # collected, or refused as a whole: nobody is paid for it twice


@dataclass
class Provider:
    """Its books. `paid_twice` are tokens that were taken while an earlier batch with one of their items was open."""

    rules: Rules
    books: list[Taken] = field(default_factory=list)
    paid_twice: list[str] = field(default_factory=list)
    _on_their_way: list[Taken] = field(default_factory=list)

    def create(self, token: str, items: frozenset[int], plan: Plan, now: datetime) -> None:
        """Whether it is taken is seen by `settle`, or later."""
        if plan.reply is Reply.LOST:
            return
        late = plan.on_its_way if plan.reply is Reply.TAKEN_LATE else timedelta()
        self._on_their_way.append(Taken(now + late, token, items, plan))
        self.arrive(now)

    def discard(self, token: str) -> None:
        """Delete the input: what is still on its way then finds nothing to execute."""
        self._on_their_way = [one for one in self._on_their_way if one.token != token]

    def arrive(self, now: datetime) -> None:
        """Take what has arrived by now."""
        for one in [one for one in self._on_their_way if one.at <= now]:
            self._on_their_way.remove(one)
            if self.rules.capabilities.create_is_idempotent and self.of(one.token):
                continue
            if any(other.items & one.items and not other.over for other in self.books):
                self.paid_twice.append(one.token)
            self.books.append(one)

    def of(self, token: str) -> Taken | None:
        return next((one for one in self.books if one.token == token), None)

    def status(self, one: Taken, now: datetime) -> BatchStatus:
        age = now - one.at
        if one.plan.refused and age >= one.plan.runs_after:
            return BatchStatus.FAILED
        if age >= one.plan.ends_after:
            return BatchStatus.ENDED
        if age < one.plan.runs_after:
            return BatchStatus.WAITING
        is_first_half = age < (one.plan.runs_after + one.plan.ends_after) / 2
        return BatchStatus.UNKNOWN if one.plan.unknown and is_first_half else BatchStatus.RUNNING


@dataclass
class File:
    """One provider batch of a simulated shard, and what was told of it."""

    facts: Facts
    items: frozenset[int]
    plan: Plan
    told: set[tuple[str, str]] = field(default_factory=set)
    polls: int = 0
    end: Step | None = None


class Shard:
    """Drives one file after the other until each of its items is answered, used up, or a person is asked."""

    def __init__(self, rules: Rules, start: datetime, plans: Callable[[int], Plan], max_attempts: int) -> None:
        self.rules = rules
        self.now = start
        self.provider = Provider(rules)
        self.files: list[File] = []
        self._plans = plans
        self._max_attempts = max_attempts

    def send(self, items: frozenset[int]) -> list[File]:
        """Send the items, and again what failed, as often as they may be asked; every file that this took."""
        mine: list[File] = []
        attempts = 0
        while items and attempts < self._max_attempts:
            file = self._intended(items)
            mine.append(file)
            self._drive(file)
            if isinstance(file.end, AskPerson):
                break
            collected = isinstance(file.end, Done)
            attempts += collected
            lost = sorted(items)[: 0 if file.plan.late_lines else file.plan.missing]
            items = frozenset(lost) if collected else items
        return mine

    def _intended(self, items: frozenset[int]) -> File:
        number = len(self.files)
        facts = Facts(
            number, 1, 1, ProviderBatchState.INTENT, self.rules.account, f"token{number}", len(items), self.now
        )
        self.files.append(File(facts, items, self._plans(number)))
        return self.files[-1]

    def _drive(self, file: File) -> None:
        seen: Seen = None
        for _ in range(ENDLESS):
            self.provider.arrive(self.now)
            step = next_step(file.facts, seen, self.rules, self.now)
            match step:
                case Wait(look_again=look_again):
                    self.now, seen = look_again, None
                    continue
                case AskPerson(look_again=look_again) if look_again is not None:
                    self.now, seen = look_again, None
                case AskPerson() | Done():
                    file.end = step
                case GiveUp():
                    self._give_up(file, step)
                case _:
                    seen = self._done(file, step)
            file.told.add((type(step).__name__, str(seen)))
            if file.end is not None:
                return
        raise AssertionError(f"no end of {file}")

    def _give_up(self, file: File, step: GiveUp) -> None:
        if step.discard_input:
            self.provider.discard(file.facts.token)
        if taken := self.provider.of(file.facts.token):
            taken.over = self.provider.status(taken, self.now) is BatchStatus.FAILED
        file.end = step

    def _done(self, file: File, step: Step) -> Seen:
        match step:
            case StageInput():
                file.facts = replace(file.facts, input_ref="file")
                return None
            case Create():
                return self._created(file)
            case LookUp():
                return self._looked_up(file)
            case Poll():
                return self._polled(file)
            case Collect(lose_missing=lose_missing):
                return self._collected(file, lose_missing)
            case _:
                raise AssertionError(step)

    def _created(self, file: File) -> Seen:
        facts, plan = file.facts, file.plan
        if facts.creating_at is None:
            file.facts = facts = replace(facts, state=ProviderBatchState.CREATING, creating_at=self.now)
        self.provider.create(facts.token, file.items, plan, self.now)
        if plan.reply is not Reply.TAKEN:
            self.now += self.rules.create_timeout
            file.plan = replace(plan, reply=Reply.TAKEN)  # a second call with the same token is answered
            return Unanswered()
        self._known(file)
        return None

    def _known(self, file: File) -> None:
        name = f"batch {file.facts.token}"
        file.facts = replace(
            file.facts, state=ProviderBatchState.SUBMITTED, submitted_at=self.now, provider_id=name, raw_status="?"
        )

    def _looked_up(self, file: File) -> Seen:
        taken = self.provider.of(file.facts.token)
        assert file.facts.creating_at is not None
        grace_over = self.now >= file.facts.creating_at + self.rules.absent_after  # then its listing shows all it took
        is_listed = taken is not None and (grace_over or self.now >= taken.at + taken.plan.listed_after)
        if self.rules.capabilities.lookup is not Lookup.FINGERPRINT:
            if is_listed:
                self._known(file)
                return None
            return Absent()
        rival_ended = self.now >= file.facts.creating_at + (self.rules.capabilities.window or timedelta(days=1))
        if is_listed and taken is not None and self.provider.status(taken, self.now) is BatchStatus.ENDED:
            self._known(file)
            return None
        if is_listed or (file.plan.rival and not rival_ended):
            return Unclear("its ids are read when it has ended", candidates=(shown(BatchStatus.RUNNING),))
        return Absent()

    def _polled(self, file: File) -> Seen:
        taken = self.provider.of(file.facts.token)
        assert taken is not None
        file.polls += 1
        if file.polls == 1 and file.plan.unreachable:
            return Unreachable(Call.POLL)
        status = self.provider.status(taken, self.now)
        is_unknown = status is BatchStatus.UNKNOWN
        since = (file.facts.unknown_since or self.now) if is_unknown else None
        file.facts = replace(file.facts, raw_status=str(status), unknown_since=since)
        if status is BatchStatus.ENDED and file.facts.state is ProviderBatchState.SUBMITTED:
            ended = ProviderBatchState.ENDED
            file.facts = replace(file.facts, results_named=True, answers_named=True)
            file.facts = replace(file.facts, state=ended, over_at=self.now, ended_at=self.now)
        return shown(status)

    def _collected(self, file: File, lose_missing: bool) -> Seen:
        taken, facts = self.provider.of(file.facts.token), file.facts
        assert taken is not None
        assert facts.over_at is not None
        has_come = file.plan.late_lines and self.now >= facts.over_at + self.rules.results_grace / 2
        missing = 0 if has_come else min(file.plan.missing, facts.requests)
        if missing and not lose_missing:
            return Fetched(missing)
        taken.over = True
        file.facts = replace(facts, state=ProviderBatchState.COLLECTED)
        return None


def can_be_stopped(rules: Rules) -> bool:
    """Whether discarding the input stops a create call that is still on its way."""
    return rules.capabilities.input is not Input.INLINE

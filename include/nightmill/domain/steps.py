"""What can happen next to one provider batch, as values: `next_step` chooses one, run_shard carries it out, and the
table of waits says what ends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from nightmill.domain.states import ProviderBatchState


@dataclass(frozen=True, slots=True)
class StageInput:
    """Bring its requests to the provider, and commit where they lie. Nothing can be paid for yet."""


@dataclass(frozen=True, slots=True)
class Create:
    """Send the create call, exactly once. `again`: one with the same token went out before, and the provider takes
    both for one."""

    again: bool = False


@dataclass(frozen=True, slots=True)
class LookUp:
    """Ask the provider whether it took a create call that was never answered."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Ask the provider how it stands. `stop`: ask it first to execute no more of it."""

    stop: bool = False


@dataclass(frozen=True, slots=True)
class Collect:
    """Fetch its results and settle its items. Where answers are missing, nothing is settled before `lose_missing`
    says that they count as lost."""

    lose_missing: bool = False


@dataclass(frozen=True, slots=True)
class AskPerson:
    """Only a person can go on. `command` is what to run for it; `remedy` says how to decide.

    `look_again` None ends the task until a person clears it. Otherwise the provider is asked again at that time,
    because it may answer the question itself. `blocks`: the whole batch sends nothing until then.
    """

    cause: str
    remedy: str
    command: str
    look_again: datetime | None = None
    blocks: bool = True


class GivenUp(StrEnum):
    """Why a provider batch is given up. Its items are free again."""

    UNSENT_CANCELLED = "cancelled before it was sent"
    UNSENT_ACCOUNT = "not sent before the connection got another account or key"
    UNSENT_PROBING = "not sent: the account takes one file at a time just now"
    NO_ROOM = "refused: the provider has no room now"
    TOO_LARGE = "refused: larger than the provider takes"
    CREATE_REFUSED = "create refused"
    NOT_TAKEN = "the provider takes no new batches now"
    ABSENT = "absent at the provider after the quiet period"
    REFUSED_FILE = "refused by the provider's validation"
    NEVER_WOUND_DOWN = "cancelled, and not ended in time"


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Give it up. `discard_input`: delete what was staged first, so that a create call that is still on its way finds
    nothing to execute. `ask` is what a person has to act on besides."""

    why: GivenUp
    discard_input: bool = False
    ask: AskPerson | None = None


class WaitsFor(StrEnum):
    """What ends a wait."""

    UNBLOCKED = "a person, who clears what blocked the batch"
    PROVIDER = "the provider, which gives no answer now"
    CREATE_SEEN = "the provider, to show whether it took the batch"
    CANDIDATES = "the batches at the provider that may be this one, to end: the ids in their results prove it"
    STATUS = "the provider, to show a status that nightmill knows"
    END = "the provider, to end the batch"
    STOPPED = "the provider, to stop the batch"
    RESULTS = "the answers, counts or files that the ended batch owes"


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be done now. The shard looks again at `look_again`, or as soon as the provider shows a change; by
    `latest` it has ended, or a person has been told. `sends_nothing`: no other file of the shard goes out meanwhile."""

    what: WaitsFor
    look_again: datetime
    latest: datetime
    sends_nothing: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """It is over, as that state says."""

    state: ProviderBatchState


Step = StageInput | Create | LookUp | Poll | Collect | GiveUp | AskPerson | Wait | Done


@dataclass(frozen=True, slots=True)
class Ending:
    """How a wait ends, for the table of waits: until when at the latest, and who hears of it then."""

    until: str
    alert: str


_STUCK = "alert of nightmill_maintenance"
ENDINGS: Mapping[WaitsFor, Ending] = {
    WaitsFor.UNBLOCKED: Ending(
        "maintenance.abandoned_after_s (7 days) after it was blocked, then its task fails and the batch is cancelled "
        "after as long again",
        f"the failed task; then {_STUCK}",
    ),
    WaitsFor.PROVIDER: Ending(
        "6 h, and for a batch that the provider has: 24 h after its window",
        f"{_STUCK}; for a batch that the provider has: the batch is BLOCKED",
    ),
    WaitsFor.CREATE_SEEN: Ending(
        "create timeout + quiet period (or the provider's own grace, if that is longer), then it is sent anew; an hour "
        "longer where the provider's listing proves nothing, then a person is asked",
        "the batch is BLOCKED: [lost creates](#lost-creates)",
    ),
    WaitsFor.CANDIDATES: Ending(
        "6 h after the provider's window, then a person is asked; it is never sent again before",
        "the batch is BLOCKED: [lost creates](#lost-creates)",
    ),
    WaitsFor.STATUS: Ending(
        "provider.unknown_status_s (6 h), then a person is asked; it is polled on, and goes on by itself once the "
        "status is known",
        "an ALERT in the shard's log, and the batch is BLOCKED without a failed task; 24 h after its window its task "
        "fails",
    ),
    WaitsFor.END: Ending(
        "6 h after its window (6 h while it is validated), then it is cancelled at the provider and the rest is sent "
        "again; 24 h after its window where that does not help",
        f"{_STUCK}; then the batch is BLOCKED",
    ),
    WaitsFor.STOPPED: Ending(
        "24 h after its window, then it is given up; what the provider still has is read and booked when it ends, as "
        "long as its results are kept (30 days)",
        _STUCK,
    ),
    WaitsFor.RESULTS: Ending(
        "provider.results_grace_s (15 min), then what is there counts; a file that holds paid answers and is never "
        "named: 48 h",
        "the shard's log, with what was sent, answered and counted; the lines are lost ones. For a file: the batch is "
        "BLOCKED",
    ),
}

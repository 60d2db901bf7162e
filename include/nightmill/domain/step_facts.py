"""What `next_step` decides from: the row of one provider batch, what this wake-up has learnt of it, and the rules.

All of it is given; nothing here reads a clock, a file or a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from nightmill.domain.capabilities import Capabilities
from nightmill.domain.deadlines import NO_WINDOW, SLACK
from nightmill.domain.limits import Dimensions, Limit
from nightmill.domain.snapshots import Absent, Snapshot, Stopped, Unclear
from nightmill.domain.states import ProviderBatchState


@dataclass(frozen=True, slots=True)
class Facts:
    """One provider batch as the ledger has it; times are UTC.

    `creating_at` is when its create call went out, `over_at` when it was first seen to have ended, `unknown_since`
    since when its status is one that nobody knows. `window_ends_at` is when the provider ends it by itself,
    `results_until` how long its results are kept there; None where nobody says. `finished`, `answered` and `total` are
    the provider's counts at the last look, None where it did not count. `results_named`: it named results that can be
    fetched; `answers_named`: such as can hold answers. `stopped`: why it may leave requests unanswered;
    `stopped_by_hand`: somebody else than nightmill cancelled it there. `is_probe`: the account's other files wait for
    what becomes of this one, and nothing was seen of that.
    """

    provider_batch_id: int
    batch_id: int
    shard_id: int
    state: ProviderBatchState
    account: str
    token: str
    requests: int
    intent_at: datetime
    input_ref: str | None = None
    creating_at: datetime | None = None
    submitted_at: datetime | None = None
    provider_id: str | None = None
    raw_status: str | None = None
    unknown_since: datetime | None = None
    over_at: datetime | None = None
    ended_at: datetime | None = None
    window_ends_at: datetime | None = None
    results_until: datetime | None = None
    total: int | None = None
    finished: int | None = None
    answered: int | None = None
    results_named: bool = False
    answers_named: bool = False
    stopped: Stopped | None = None
    stopped_by_hand: bool = False
    is_probe: bool = False

    @property
    def since(self) -> datetime:
        """When it came into its state."""
        return self.ended_at or self.submitted_at or self.creating_at or self.intent_at

    @property
    def name(self) -> str:
        """`Provider batch 7`."""
        return f"Provider batch {self.provider_batch_id}"


class Call(StrEnum):
    """A call to the provider."""

    STAGE = "bring the requests"
    CREATE = "create"
    LOOK_UP = "look up"
    DISCARD = "delete the staged input"
    POLL = "poll"
    FETCH = "fetch results"


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The create call ended without an answer that can be trusted: the provider may or may not have taken it."""

    retry_after_s: float | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A call surely did nothing, and the same call can succeed later; also "not found" of what the provider made, since
    its replicas lag behind."""

    call: Call
    retry_after_s: float | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A call can never succeed before somebody acts on the remedy."""

    call: Call
    cause: str
    remedy: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class NoRoom:
    """The account has as much under way as it may, or is asked to slow down."""

    limit: Limit = Limit.QUEUE
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class TooLarge:
    """It is larger than the provider takes."""

    found: Dimensions


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Another file of the account is its probe since a moment."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Its results were read; so many of its requests stand nowhere in them."""

    missing: int


# None: nothing was asked in this wake-up so far. What changes its state (found, created, ended, collected) is recorded
# at once and stands in the facts.
Seen = Snapshot | Absent | Unclear | Unanswered | Unreachable | Refused | NoRoom | TooLarge | HeldBack | Fetched | None


@dataclass(frozen=True, slots=True)
class MaySend:
    """Nothing speaks against sending for this batch."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """The batch waits for a person since then: what it has at the provider is collected, nothing new is sent."""

    since: datetime


@dataclass(frozen=True, slots=True)
class Broken:
    """A breaker of the batch is open."""

    cause: str
    remedy: str


Sending = MaySend | Blocked | Broken

DAY = timedelta(hours=24)
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Rules:
    """How long each thing may last and how often it is looked at. `account` and `conn_id` are what the connection has
    now; `winding_down`: its batch was cancelled, so what is there is stopped and collected and nothing is sent.

    The factors multiply `poll_interval`. They are large where the trigger sees a change by itself.
    """

    capabilities: Capabilities
    account: str
    conn_id: str
    poll_interval: timedelta
    create_timeout: timedelta
    quiet_period: timedelta | None  # None: the adapter's own
    results_grace: timedelta
    unknown_status: timedelta
    abandoned_after: timedelta
    winding_down: bool = False
    sending: Sending = MaySend()
    running_factor: int = 20
    probe_factor: int = 2
    unknown_factor: int = 4
    unknown_share: float = 0.25  # of the time that it has lasted so far
    unknown_slowest: timedelta = timedelta(minutes=15)
    blocked_pause: timedelta = timedelta(minutes=5)
    longest_pause: timedelta = DAY  # also where a provider asks for more
    unproven: timedelta = timedelta(hours=1)  # for a listing that can be read better soon
    slack: timedelta = SLACK  # of what is ours to do, and behind the window of the provider's
    late_after: timedelta = DAY  # its window
    followed: timedelta = timedelta(days=30)  # where the provider does not say until when it keeps results

    @property
    def absent_after(self) -> timedelta:
        """So long after a create call, its absence is proved by a complete listing without it."""
        grace = self.capabilities.absence_grace if self.quiet_period is None else self.quiet_period
        return self.create_timeout + grace

    def window_end(self, facts: Facts) -> datetime:
        """When the provider has ended it by itself; where nobody says, the adapter's window after it was sent."""
        sent_at = facts.submitted_at or facts.since
        return facts.window_ends_at or sent_at + (self.capabilities.window or NO_WINDOW)

    def late_at(self, facts: Facts) -> datetime:
        """When it should have ended whatever happened."""
        return self.window_end(facts) + self.late_after

    def kept_until(self, facts: Facts) -> datetime:
        """How long what a cancelled batch left at the provider is followed."""
        return facts.results_until or facts.since + self.followed

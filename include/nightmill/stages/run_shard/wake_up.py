"""What one wake-up of a shard works with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from nightmill.domain.capabilities import QueueUnit
from nightmill.domain.priority import room_for
from nightmill.domain.states import BatchState
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.settings.job import Job
from nightmill.providers.port import Transport
from nightmill.providers.provider import Provider
from nightmill.services.environment import Environment
from nightmill.storage import batches
from nightmill.storage.batches import Batch
from nightmill.storage.fence import Holder
from nightmill.storage.session import Connection, reading
from nightmill.storage.settlement import Retries, Settling
from nightmill.storage.shards import Shard

LONGEST_WAIT = timedelta(hours=24)  # also where a provider asks for more


@dataclass(frozen=True, slots=True)
class Limits:
    """What one file and one account may hold for this shard. None: nobody says so."""

    requests_per_file: int
    bytes_per_file: int
    enqueued_prompt_tokens: int | None


@dataclass
class WakeUp:
    """One wake-up: the shard as taken over, its pinned contract, the live settings, and what was seen and done.

    `wake_times` collects when something can have changed; `said` the words for the log line.
    """

    env: Environment
    conn: Connection
    provider: Provider
    account: str
    batch: Batch
    shard: Shard
    holder: Holder
    pinned: JobDefinition
    live: Job
    directory: Path
    unsettled: int | None = None  # items of the shard without an outcome, once they were counted
    wake_times: list[datetime] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    alarms: set[str] = field(default_factory=set)  # what of it a person should hear of
    winding_down: bool = False  # its batch was cancelled: stop and collect what was sent, settle and send nothing
    hold_s: float = 0.0  # how long the provider asked to be left alone
    send_nothing: bool = False  # the provider has no room or gives no answer: no further file in this wake-up

    @property
    def settling(self) -> Settling:
        """How arrivals are settled; the retry budgets are read live."""
        settling = Settling.of(self.pinned, self.batch.contract_id, self.batch.options, Retries.of(self.live))
        return replace(settling, reuse_only=self.winding_down)

    @property
    def limits(self) -> Limits:
        """The tighter of the adapter's and the job's limits; a run of low priority leaves room to others."""
        own, config = self.transport.capabilities, self.live.provider.limits
        queue = own.queue.most if own.queue is not None and own.queue.unit is QueueUnit.TOKENS else None
        return Limits(
            requests_per_file=min(own.most_requests, config.requests_per_file or own.most_requests),
            bytes_per_file=min(own.most_bytes, config.bytes_per_file or own.most_bytes),
            enqueued_prompt_tokens=room_for(self.batch.options.priority, config.enqueued_prompt_tokens or queue),
        )

    @property
    def transport(self) -> Transport:
        return self.provider.transport

    @property
    def name(self) -> str:
        """As the batch knows what blocked it."""
        return f"shard {self.shard.shard_id}"

    def is_blocked(self) -> bool:
        """Whether the batch waits for a person, read now: then nothing new may be sent."""
        with reading(self.conn):
            return batches.get(self.conn, self.batch.batch_id).state is BatchState.BLOCKED

    def note(self, text: str, *, alarm: bool = False) -> None:
        """Add to this wake-up's log line. Ids, counts and states only. `alarm`: a person should hear of it."""
        self.said.append(text)
        if alarm:
            self.alarms.add(text)

    def leave_alone(self, seconds: float | None) -> None:
        """Make no call for this shard before that time, if the provider named one (Retry-After); at most 24 h."""
        self.hold_s = max(self.hold_s, min(seconds or 0.0, LONGEST_WAIT.total_seconds()))

    def look_again_in(self, seconds: float) -> None:
        """Wake up after this time at the latest."""
        self.wake_times.append(self.env.now() + timedelta(seconds=seconds))

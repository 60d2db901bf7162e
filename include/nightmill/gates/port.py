"""What a gate is: a name, whether a job has it, and a look at a batch that ends with one of five verdicts.

A gate reads and judges. The driver writes: the verdict, and what it means for the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nightmill.domain.gates import GateName, Word
from nightmill.domain.states import BatchState
from nightmill.jobs.contract import JobDefinition
from nightmill.services.environment import Environment
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

Details = dict[str, Any]
TOLD = "told"  # of details: lines for whoever is asked to approve


@dataclass(frozen=True, slots=True)
class Passed:
    """The gate is open for this generation. `details` hold counts and names of rules, never document text;
    `config_hash` tells the settings that it was judged by; `by` is the person who decided, if one did. `recorded`: the
    ledger has this very verdict already."""

    details: Details
    config_hash: str
    by: str | None = None
    recorded: bool = False
    word = Word.PASSED


@dataclass(frozen=True, slots=True)
class Refused:
    """The gate is closed until somebody acts on `remedy` and clears its task. `why` is one sentence without a full
    stop; each of `queries` shows the nightmill_owner what is wrong. `ends` is the state that the batch ends in; None:
    it is BLOCKED."""

    why: str
    remedy: str
    details: Details
    config_hash: str
    queries: tuple[str, ...] = ()
    ends: BatchState | None = None
    word = Word.REFUSED


@dataclass(frozen=True, slots=True)
class Waiting:
    """Somebody must answer first. The batch is BLOCKED meanwhile; `what_for` completes "waits for"."""

    what_for: str
    details: Details
    config_hash: str = ""
    word = Word.WAITING


@dataclass(frozen=True, slots=True)
class Rejected:
    """No for good, by a person or by a time-out: the batch ends REJECTED. `revoke`: its answers are not reused."""

    by: str
    why: str
    details: Details
    config_hash: str = ""
    revoke: bool = False
    word = Word.REJECTED


@dataclass(frozen=True, slots=True)
class NotConfigured:
    """The job does not have this gate, which is recorded and opens it."""

    details: Details = field(default_factory=dict)
    config_hash: str = Word.NOT_CONFIGURED
    word = Word.NOT_CONFIGURED


Verdict = Passed | Refused | Waiting | Rejected | NotConfigured


@dataclass(frozen=True, slots=True)
class Look:
    """What a gate looks at. `live` is the job folder as it is now; thresholds come from there, meaning from the pinned
    contract. `conn` is in a transaction that the driver ends; a gate may commit what it has read."""

    env: Environment
    conn: Connection
    live: JobDefinition
    batch: Batch


def always(_live: JobDefinition) -> bool:
    """Whether a job has the gate: every job does."""
    return True


@dataclass(frozen=True, slots=True)
class Gate:
    """`applies` says whether the job has it; `evaluate` is asked only then. A gate without `for_previews` is not asked
    about a preview before somebody wants to publish it."""

    name: GateName
    applies: Callable[[JobDefinition], bool]
    evaluate: Callable[[Look], Verdict]
    for_previews: bool = True

"""What a provider's batch transport can do, as values: the core asks these and never which provider it is.

An adapter declares them once. A limit that an account sets itself is tightened in job.yaml (`provider.limits`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Lookup(StrEnum):
    """How a batch is found again whose create call ended without an answer."""

    METADATA = "metadata"  # it carries our token, and every listed batch shows it: absence can be proved
    NAME = "name"  # it carries our token in its name: as good
    FINGERPRINT = "fingerprint"  # only its time and size speak for it; the ids of its results prove it once it ended
    NONE = "none"  # it cannot be looked for


class Input(StrEnum):
    """How requests travel to the provider."""

    FILE = "file"  # an uploaded file, named by the create call; deleting it makes a late create call fail
    INLINE = "inline"  # in the create call itself: nothing is staged, and a late create cannot be stopped
    STORE = "store"  # an object store of the account's, which both sides read


class QueueUnit(StrEnum):
    """What a limit on waiting work counts."""

    TOKENS = "tokens"  # prompt tokens
    REQUESTS = "requests"
    JOBS = "jobs"  # batches, whatever their size


class QueueScope(StrEnum):
    """What shares one limit on waiting work."""

    MODEL = "model"  # one model of the account
    DEPLOYMENT = "deployment"
    ORGANISATION = "organisation"  # every model, project and key of it
    REGION = "region"  # one model in one region of the account


@dataclass(frozen=True, slots=True)
class QueueLimit:
    """How much work may wait at the provider at a time. `most` None: the number cannot be known beforehand, and what
    the provider refuses teaches it."""

    unit: QueueUnit
    scope: QueueScope
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """One adapter's answers.

    `create_is_idempotent`: a second create call with the same token buys nothing. `absence_grace`: so long after a
    create call, neither a 404 nor a complete listing without our batch proves that it is not there. `least_requests`,
    `most_requests` and `most_bytes` are of one batch. `window`: the provider ends a batch by itself after that time;
    None = it never does. `results_kept`: how long results can be fetched after the batch was created; None = for as
    long as the account keeps them. `lists_ours`: batches with a token of ours can be listed, whoever made them.
    `pinned_scopes`: names of what decides beside the key whose batches are seen (workspace, region, project); each is
    a field of the connection's extra, pinned with the batch.
    """

    create_is_idempotent: bool
    lookup: Lookup
    absence_grace: timedelta
    input: Input
    most_requests: int
    most_bytes: int
    least_requests: int = 1
    queue: QueueLimit | None = None
    window: timedelta | None = None
    results_kept: timedelta | None = None
    lists_ours: bool = False
    pinned_scopes: tuple[str, ...] = ()

    @property
    def stages_input(self) -> bool:
        """Whether the requests are brought to the provider before the create call. Discarding them makes a create call
        fail that is still on its way."""
        return self.input is not Input.INLINE

    @property
    def can_prove_absence(self) -> bool:
        """Whether a lookup can show that the provider did not take a batch."""
        return self.lookup in (Lookup.METADATA, Lookup.NAME)

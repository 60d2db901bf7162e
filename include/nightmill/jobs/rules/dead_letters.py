"""Which dead letters somebody means, and how many of them a job tolerates. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints, ValidationError

from nightmill.domain.errors import ConfigError
from nightmill.domain.failures import EndedAs, FailureClass
from nightmill.domain.wording import pluralised
from nightmill.jobs.settings.job import DeadLetterLimits

Word = Annotated[str, StringConstraints(min_length=1)]


class DeadLetterFilter(BaseModel):
    """Dead letters, and items in review, by what they have in common. An empty condition restricts nothing;
    `ids` are ids of the source."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    classes: tuple[FailureClass, ...] = ()
    codes: tuple[Word, ...] = ()
    ended_as: tuple[EndedAs, ...] = ()
    tenants: tuple[str, ...] = ()  # an empty one is the tenant of jobs that have none
    ids: tuple[Word, ...] = ()
    since: AwareDatetime | None = None

    @classmethod
    def of_json(cls, given: Any) -> DeadLetterFilter:
        """From a run's configuration, which people write too. Raises ConfigError that names keys, no values."""
        try:
            return cls.model_validate(given or {})
        except ValidationError as fault:
            wrong = ", ".join(sorted({".".join(map(str, one["loc"])) or "it" for one in fault.errors()}))
            raise ConfigError(
                f"What to replay is not understood: {wrong}.",
                f"Known are {', '.join(cls.model_fields)}: lists of text, `since` a time with its zone; classes are "
                f"{', '.join(FailureClass)}.",
            ) from None

    def as_json(self) -> dict[str, Any]:
        """What restricts, for a run's configuration and the batch's parameters."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @property
    def conditions(self) -> dict[str, Any]:
        """Values of the queries; None = no restriction."""
        return {
            "classes": [str(one) for one in self.classes] or None,
            "codes": list(self.codes) or None,
            "ended_as": list(self.ended_as) or None,
            "tenants": list(self.tenants) or None,
            "ids": list(self.ids) or None,
            "since": self.since,
        }


def breaches(limits: DeadLetterLimits, letters: int, oldest: datetime | None, now: datetime) -> list[str]:
    """What a job's limits say about the dead letters of a batch, a sentence each; empty while they hold."""
    found = []
    if limits.max_count is not None and letters > limits.max_count:
        found.append(f"{pluralised(letters, 'dead letter')}, more than dead_letters.max_count {limits.max_count:,}")
    if limits.max_age_h is not None and oldest is not None and now - oldest > timedelta(hours=limits.max_age_h):
        age = (now - oldest).total_seconds() / 3600
        limit = f"dead_letters.max_age_h {limits.max_age_h:g}"
        found.append(f"the oldest dead letter is {age:.1f} h old, more than {limit}")
    return found


def by_reason(counts: Mapping[tuple[str, str], int]) -> str:
    """`3 output/schema, 1 input/over_context`."""
    return ", ".join(f"{letters:,} {kind}/{code}" for (kind, code), letters in counts.items()) or "none"

"""What the models of a job folder's configuration share."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, get_args, get_origin
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import orjson
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationInfo, field_validator
from pydantic_core import PydanticKnownError

from nightmill.domain.suggestions import hint
from nightmill.jobs.settings.forms import CONNECTION_ID, IDENTIFIER

CONNECTION_HELP = "The id of an Airflow connection (letters, digits, _ . -), not its address."
DAY = 86_400.0  # seconds
DAYS = 36_500  # that anything is kept at most
MOST = 10**15  # of any number: what is added to it still fits into 64 bits
Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER)]
ConnectionId = Annotated[str, StringConstraints(pattern=CONNECTION_ID)]
Tag = Annotated[str, StringConstraints(max_length=100)]


def refuse_no_json(value: Any, dates: Callable[[Any], str] | None = None) -> None:
    """Raise ValueError for what cannot be written as JSON and hashed."""
    try:
        json.dumps(value, allow_nan=False, default=dates)
    except (TypeError, ValueError):
        quotes = "" if dates else "dates go in quotes, "
        raise ValueError(f"holds what JSON does not have: {quotes}numbers are finite") from None
    try:
        orjson.dumps(value)
    except TypeError:
        raise ValueError(
            "holds what cannot be hashed: keys are text, whole numbers fit into 64 bits, a set is written as a list"
        ) from None


def known_zone(value: str) -> str:
    """Raise ValueError for what is no time zone."""
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"is no time zone of the IANA list{hint(value, available_timezones())}") from None
    return value


class Config(BaseModel):
    """Base of all configuration: frozen, and a key that nobody knows is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _a_number_is_one(cls, value: Any, info: ValidationInfo) -> Any:
        """Python takes true for 1, and YAML has .inf and .nan."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        kinds = {annotation, *(get_args(annotation) if get_origin(annotation) is UnionType else ())}
        if isinstance(value, bool) and bool not in kinds and kinds & {int, float}:
            raise PydanticKnownError("int_type" if int in kinds else "float_type")
        if isinstance(value, int | float) and not abs(value) <= MOST:
            raise ValueError(f"expected a number of at most {MOST:,}")
        return value

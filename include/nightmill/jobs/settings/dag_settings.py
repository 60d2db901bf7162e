"""job.yaml: `dag`, how Airflow runs the job: in which time zone, since when, after which assets, how often again."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from pydantic import Field, field_validator, model_validator

from nightmill.jobs.settings.base import DAY, Config, Identifier, known_zone

FIRST_DAY = date(2025, 1, 1)
MOST_ASSETS = 50
_NO_ASSET_NAME = frozenset({"self", "context"})  # Airflow's words for other things


class AssetOf(Config):
    """One asset: another nightmill view, or one that any other DAG updates, named as its producer names it."""

    view: Identifier | None = Field(default=None, description="A view that another job publishes; alone.")
    name: str | None = Field(
        default=None, min_length=1, max_length=1500, description="The asset's name. null = it has its URI as its name."
    )
    uri: str | None = Field(
        default=None, min_length=1, max_length=1500, description="The asset's URI. null = it has its name as its URI."
    )

    @field_validator("name", "uri")
    @classmethod
    def _airflow_takes_it(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if value in _NO_ASSET_NAME or value.lower().startswith("airflow:") or not value.isascii() or value.isspace():
            raise ValueError(
                "is no name or URI of an Airflow asset: ASCII characters, not `self` or `context`, no scheme airflow:"
            )
        return value

    @model_validator(mode="after")
    def _one_asset(self) -> AssetOf:
        if (self.view is None) == (self.name is None and self.uri is None):
            raise ValueError("expected either `view`, or `name` or `uri` or both of them as the producer has them")
        return self


class AfterAssets(Config):
    """A run starts once these assets have been updated: after each one of `all`, or after one of `any`."""

    all: tuple[AssetOf, ...] = Field(
        default=(), max_length=MOST_ASSETS, description="A run starts when each of them has been updated."
    )
    any: tuple[AssetOf, ...] = Field(
        default=(), max_length=MOST_ASSETS, description="A run starts when one of them has been updated."
    )

    @model_validator(mode="after")
    def _one_list(self) -> AfterAssets:
        if bool(self.all) == bool(self.any):
            raise ValueError("expected a list of assets under `all` or under `any`, not under both")
        return self


class DagSettings(Config):
    """How Airflow runs the job. See docs/guides/schedule.md."""

    timezone: str = Field(
        default="UTC",
        max_length=100,
        description="The zone in which `schedule` and start_date are read, by its IANA name (UTC, Europe/Berlin).",
    )
    start_date: date = Field(
        default=FIRST_DAY,
        ge=date(1970, 1, 2),
        le=date(2200, 1, 1),
        description="The first day, such as 2026-01-31: no interval begins before it.",
    )
    catchup: bool = Field(
        default=False,
        description="Whether all intervals since start_date are run once the DAG is switched on; it needs a "
        "`schedule` and a start_date. false = only the newest.",
    )
    max_active_runs: int = Field(
        default=1, ge=1, le=100, description="How many runs may be open at once; above 1 only with by_interval."
    )
    retries: int = Field(
        default=8, ge=0, le=100, description="How often a task that failed is tried again. run_shard has its own 10."
    )
    retry_delay_s: float = Field(
        default=10, ge=1, le=DAY, description="The wait before the first of them (seconds); it doubles each time."
    )
    after_assets: AfterAssets | None = Field(
        default=None, description="Assets after which a run starts, beside `schedule` or instead of it. null = none."
    )

    @field_validator("timezone")
    @classmethod
    def _a_zone_is_known(cls, value: str) -> str:
        return known_zone(value)

    @field_validator("start_date", mode="before")
    @classmethod
    def _a_day_is_no_number(cls, value: Any) -> Any:
        """Pydantic takes a number for seconds since 1970."""
        text = value.replace("_", "").lstrip("+-") if isinstance(value, str) else ""
        if isinstance(value, datetime) or not isinstance(value, date | str) or text.isdigit():
            raise ValueError("expected a day such as 2026-01-31")
        return value

"""job.yaml: `publish`, what readers of the view see."""

from __future__ import annotations

from pydantic import Field

from nightmill.domain.config import Config, Identifier


class Publish(Config):
    """Which view shows the results, in schema `results`."""

    view: Identifier = Field(
        description="Lower-case letters, digits and _, at most 48; in schema results. One job's only."
    )

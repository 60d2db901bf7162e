"""A job folder checked as a whole: everything that can be wrong with it before a run."""

from __future__ import annotations

from nightmill.domain.contract import JobDefinition
from nightmill.validators.schema import AnswerReader, strict_schema


def check_definition(definition: JobDefinition) -> None:
    """Raise ConfigError for the first fault of a job folder."""
    definition.check()
    strict_schema(definition.output)
    AnswerReader(definition.output)

"""What a provider says of how an answer ended, in our own words."""

from __future__ import annotations

from enum import StrEnum


class Ending(StrEnum):
    """How a model's answer ended."""

    FINISHED = "finished"  # the model ended it
    TRUNCATED = "truncated"  # a limit of tokens ended it
    FILTERED = "filtered"  # a rule of the provider took it back
    REFUSED = "refused"  # the model declined
    TOOLS = "tools"  # the model calls a tool and waits for what it returns
    FAILED = "failed"  # generating broke off
    UNKNOWN = "unknown"  # a word that nobody knows, or none: the answer is judged by its text

"""Faults. Outcomes of single items are values (see `outcomes`), never exceptions.

Every error says what is wrong and where, then what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nightmill.domain.limits import Dimensions, Limit


class NightmillError(Exception):
    """Base of every fault that nightmill raises on purpose.

    `cause` says what is wrong and where; `remedy` says what a person can do. Neither may hold document text,
    prompts, answers or secrets: both end up in task logs.
    """

    def __init__(self, cause: str, remedy: str) -> None:
        stop = "" if cause.endswith((".", "!", "?", ";")) else "."
        super().__init__(f"{cause}{stop}{chr(10) if chr(10) in cause else ' '}Remedy: {remedy}")
        self.cause = cause
        self.remedy = remedy


class Terminal(NightmillError):
    """Trying again changes nothing until somebody acts on the remedy."""


class Transient(NightmillError):
    """The same call can succeed later without anybody's help."""


class ConfigError(Terminal):
    """A job folder, deployment file or connection is wrong."""


class MissingExtra(ConfigError):
    """A library that only some deployments need is not installed. `extra` is the one of nightmill that brings it."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(
            f"{library} is not installed here.",
            f"Install it for every component of Airflow: pip install 'nightmill[{extra}]'.",
        )


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing to correct in a job folder. `line` counts from 1, None = the file as a whole; `key` is dotted."""

    file: str
    line: int | None
    key: str | None
    problem: str
    remedy: str

    def __str__(self) -> str:
        """`job.yaml:12: provider.modle: unknown key; did you mean 'model'?`"""
        return ": ".join(part for part in (self.place, self.key, self.problem) if part)

    @property
    def place(self) -> str:
        """`job.yaml:12`, as editors and terminals understand it."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


class BrokenJobFolder(ConfigError):
    """All mistakes of a job folder, or of one of its files; the cause has one line for each."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        if len(self.mistakes) == 1:
            super().__init__(str(self.mistakes[0]), self.mistakes[0].remedy)
        else:
            lines = (f"{_sentence(str(mistake))} {mistake.remedy}" for mistake in self.mistakes)
            super().__init__("\n".join(lines), "Correct each of these lines.")


def _sentence(text: str) -> str:
    return text if text.endswith("?") else f"{text}."


class SourceError(Terminal):
    """The source rows cannot be frozen as they are."""


class StaleWriter(Terminal):
    """The writer's generation or shard lease is older than the ledger's: somebody else took over or cancelled."""


class Unstorable(Terminal):
    """The database cannot hold one of the answers of a chunk. Says nothing of the answer itself."""


class IllegalTransition(Terminal):
    """A state edge that is not in the edge table, or a from-state that is no longer current."""


class Blocked(Terminal):
    """The batch waits for a person: a gate, a budget, an approval or a provider state that nobody knows."""


class ProviderUnavailable(Transient):
    """The provider could not be reached, or answered with an error that says nothing about the work itself.

    `retry_after_s` is what the provider asked for (seconds), or None. `limit` is the one that it refused the call for:
    then it surely did nothing.
    """

    def __init__(self, cause: str, remedy: str, retry_after_s: float | None = None, limit: Limit | None = None) -> None:
        super().__init__(cause, remedy)
        self.retry_after_s = retry_after_s
        self.limit = limit


class SubmitUnknown(Transient):
    """A create call ended without a trustworthy answer: the provider may or may not have accepted the work.

    `retry_after_s` as in ProviderUnavailable.
    """

    def __init__(self, cause: str, remedy: str, retry_after_s: float | None = None) -> None:
        super().__init__(cause, remedy)
        self.retry_after_s = retry_after_s


class AnswerTooLarge(Terminal):
    """What a provider sent is beyond a limit of ours. Nothing of it was kept; it can be fetched again."""


class ProviderRefused(Terminal):
    """The provider answered that this call can never succeed (wrong key, unknown model, bad request).

    `status` is the HTTP status, `code` the provider's own error code or None; `too_large` says in which ways the file
    was, if that is why.
    """

    def __init__(
        self, cause: str, remedy: str, status: int, code: str | None = None, too_large: Dimensions | None = None
    ) -> None:
        super().__init__(cause, remedy)
        self.status = status
        self.code = code
        self.too_large = too_large

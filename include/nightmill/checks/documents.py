"""What a document must be before anything is sent for it: not empty, and short enough for the model."""

from __future__ import annotations

from collections.abc import Sequence

from nightmill.checks.port import NOTHING, Code, Finding, InputCheck, InputRun, InputSubject
from nightmill.domain.failures import Action, FailureClass
from nightmill.jobs.contract import JobDefinition

_EMPTY = Finding("empty_document", "the document is empty")
_TOO_LONG = Finding(
    "over_context",
    "never sent: with the answer's reserve it is longer than provider.context_window_tokens; shorten the text in the "
    "source query, or take a model with a larger window",
)


def _prepare_not_empty(_definition: JobDefinition) -> InputRun:
    return _find_empty


def _find_empty(subject: InputSubject) -> Sequence[Finding]:
    text = subject.text
    return (_EMPTY,) if text is None or not str(text).strip() else NOTHING


def _prepare_fits_window(definition: JobDefinition) -> InputRun | None:
    provider = definition.job.provider
    if provider.context_window_tokens is None:
        return None
    room = provider.context_window_tokens - provider.output_reserve_tokens

    def run(subject: InputSubject) -> Sequence[Finding]:
        return (_TOO_LONG,) if subject.tokens > room else NOTHING

    return run


NOT_EMPTY = InputCheck(
    name="not_empty",
    codes=(
        Code(
            "empty_document",
            FailureClass.INPUT,
            "the text column is null or blank: the item is left out, without a dead letter",
            Action.EXCLUDE,
        ),
    ),
    prepare=_prepare_not_empty,
)
FITS_WINDOW = InputCheck(
    name="fits_window",
    codes=(
        Code(
            "over_context",
            FailureClass.INPUT,
            "the rendered request and the answer's reserve are longer than provider.context_window_tokens",
        ),
    ),
    prepare=_prepare_fits_window,
    rendered=True,
)

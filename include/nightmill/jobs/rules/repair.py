"""What an item is asked for again with, after an answer that was not accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nightmill.domain.failures import FailureClass
from nightmill.jobs.settings.job import Job

_TRUNCATED = "truncated"
_MOST_CHARACTERS = 20_000  # of a rejected answer that are shown again: a runaway answer must not fill the window
_ASK = (
    "Your answer above was rejected by an automatic check: {findings}. Answer the request again, completely and in the "
    "required format. Change nothing that is right already, and add no comment."
)


def repairs(job: Job, kind: str, code: str) -> bool:
    """Whether a failed attempt is followed by one that shows the rejected answer. An embedding is no conversation."""
    return kind == FailureClass.OUTPUT and code != _TRUNCATED and not job.provider.embeds


def repair_messages(
    messages: Sequence[Mapping[str, str]], rejected: str, findings: str
) -> tuple[Mapping[str, str], ...]:
    """The original conversation, the rejected answer, and what the validator found."""
    return (
        *messages,
        {"role": "assistant", "content": rejected[:_MOST_CHARACTERS]},
        {"role": "user", "content": _ASK.format(findings=findings)},
    )


def output_reserve(asked: Job, live: Job, truncations: int) -> int:
    """Tokens that an answer may take after it was cut off that many times: doubled each time, up to the job's cap.

    `asked` is the pinned job, whose requests were cut; the cap is read live. 0 when no parameter limits the answers:
    then the model's own limit cut them, and nothing here can raise it.
    """
    reserve = asked.provider.output_reserve_tokens
    cap = live.repair.max_output_tokens_cap or 2 * reserve
    return max(reserve, min(cap, reserve << min(truncations, 20)))


def is_truncation(kind: str, code: str) -> bool:
    """Whether a failed attempt was an answer that ended at its token limit."""
    return kind == FailureClass.OUTPUT and code == _TRUNCATED

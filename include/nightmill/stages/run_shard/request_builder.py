"""What an item is asked with: its request as it is, or what its last failure calls for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from nightmill.jobs.rules.repair import is_truncation, output_reserve, repair_messages
from nightmill.jobs.tokens import TokenCounter
from nightmill.services.environment import token_counter
from nightmill.stages.run_shard.rejected_answers import RejectedAnswers
from nightmill.stages.run_shard.wake_up import WakeUp
from nightmill.storage.attempts import FailedItem


class Request(msgspec.Struct, frozen=True, gc=False):
    """One request line and its prompt tokens."""

    line: bytes
    prompt_tokens: int


class RequestBuilder:
    """Makes the requests of one file. `failed` are those of its items that were attempted before."""

    def __init__(self, wake_up: WakeUp, failed: Mapping[int, FailedItem]) -> None:
        provider = wake_up.pinned.job.provider
        self._wake_up = wake_up
        self._failed = failed
        self._rejected = RejectedAnswers(wake_up, failed)
        self._room = (provider.context_window_tokens or 2**62) - provider.output_reserve_tokens

    @cached_property
    def _counter(self) -> TokenCounter:
        """Made for the first repair: its tables take 80 MB."""
        return token_counter(self._wake_up.pinned)

    def request(self, record_id: str, ordinal: int, tokens: int, values: Mapping[str, Any]) -> Request:
        """The request of one item, whose original one has that many prompt tokens."""
        wake_up = self._wake_up
        messages = wake_up.pinned.prompt.render(values)
        last = self._failed.get(ordinal)
        if last is None:
            return Request(wake_up.provider.request_line(record_id, messages), tokens)
        if is_truncation(last.kind, last.code):
            reserve = output_reserve(wake_up.pinned.job, wake_up.live, last.truncations)
            return Request(wake_up.provider.request_line(record_id, messages, reserve or None), tokens)
        rejected = self._rejected.of(ordinal, values)
        if rejected is not None:
            longer = repair_messages(messages, rejected.text, rejected.findings)
            size = self._counter.count_messages(longer)
            line = wake_up.provider.request_line(record_id, longer)
            if size <= self._room and len(line) <= wake_up.limits.bytes_per_file:
                return Request(line, size)
        return Request(wake_up.provider.request_line(record_id, messages), tokens)

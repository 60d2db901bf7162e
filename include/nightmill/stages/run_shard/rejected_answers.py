"""Rejected answers, read back from the evidence of the provider batches that brought them.

The ledger has no answer that was not accepted; the raw result files have them all. They are checked once more, so that
the model is told what is wrong by the validators themselves. Memory: some 100 bytes per rejected answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from nightmill.checks.checker import Checker
from nightmill.domain.failures import Failure
from nightmill.jobs.rules.repair import repairs
from nightmill.providers.answers import Answer, Said, Unreadable
from nightmill.stages.run_shard.one_answer import one_of
from nightmill.stages.run_shard.result_lines import places
from nightmill.stages.run_shard.wake_up import WakeUp
from nightmill.storage import payloads, provider_batches
from nightmill.storage.attempts import FailedItem
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.session import reading


class Rejected(msgspec.Struct, frozen=True):
    """An answer's text and what the validators found. Both may hold a piece of the document: never logged."""

    text: str
    findings: str


class RejectedAnswers:
    """The last answers of those failed items that are worth a repair. Evidence that is gone counts as no answer."""

    def __init__(self, wake_up: WakeUp, failed: Mapping[int, FailedItem]) -> None:
        self._wake_up = wake_up
        self._checker = Checker(wake_up.pinned, explain=True)
        self._lines: dict[int, list[tuple[Path, int, int]]] = {}
        wanted: dict[int, set[int]] = {}
        for one in failed.values():
            if repairs(wake_up.pinned.job, one.kind, one.code):
                wanted.setdefault(one.provider_batch_id, set()).add(one.ordinal)
        if wanted:
            with reading(wake_up.conn):
                former = provider_batches.of_shard(wake_up.conn, wake_up.shard.shard_id)
            for batch in former:
                if batch.provider_batch_id in wanted:
                    self._find(batch, wanted[batch.provider_batch_id])

    def of(self, ordinal: int, document: Mapping[str, Any]) -> Rejected | None:
        """The rejected answer of one item; None when there is no text to show, as after a refusal."""
        lines = [line for place in self._lines.get(ordinal, ()) for line in self._read(*place)]
        line = one_of(lines).line if lines else None
        if not isinstance(line, Answer) or not line.text:
            return None
        verdict = self._checker.check_message(line.ending, line.refusal, line.text, document, line.instead)
        return Rejected(line.text, verdict.message) if isinstance(verdict, Failure) else None

    def _read(self, path: Path, offset: int, length: int) -> list[Said]:
        with path.open("rb") as file:
            file.seek(offset)
            raw = file.read(length).rstrip(b"\r\n")
        return [line.said for line in self._wake_up.provider.read_lines([raw]) if not isinstance(line, Unreadable)]

    def _find(self, batch: ProviderBatch, ordinals: set[int]) -> None:
        for kind in ("output", "error"):
            path = self._wake_up.directory / f"{batch.token}-rejected.{kind}"
            evidence = payloads.evidence_path(self._wake_up.pinned.name, batch.batch_id, batch.token, kind)
            if not path.exists():
                most = self._wake_up.env.account(self._wake_up.pinned).answers.max_result_bytes
                if not self._wake_up.env.payloads.fetch_file(evidence, path, most):
                    continue
            for ordinal, offset, length in places(path, batch.token, self._wake_up.provider):
                if ordinal in ordinals:
                    self._lines.setdefault(ordinal, []).append((path, offset, length))

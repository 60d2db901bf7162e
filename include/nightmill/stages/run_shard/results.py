"""Reading result files: from raw lines to arrivals, joined with their payloads by custom id only.

Lines come in any order, but payloads and tables lie in item order. So a first pass over the file notes where each
item's line stands, and a second one reads the lines in item order: beside a sequential read of the payloads, where a
check needs the document, and with index pages filled one after the other. Memory: some 100 bytes per line and one
payload segment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import copy
from itertools import islice
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from nightmill.domain.errors import AnswerTooLarge
from nightmill.domain.failures import CONFLICTING_LINES, NEVER_EXECUTED, Failure, classify_line_error
from nightmill.domain.outcomes import Accepted, Verdict
from nightmill.domain.repair import is_truncation, output_reserve
from nightmill.providers.port import Answer, Embedding, LineError, ResultLine, Unreadable
from nightmill.providers.result_files import BOM
from nightmill.stages.run_shard.context import ShardContext
from nightmill.stages.run_shard.custom_ids import ordinal_of
from nightmill.stages.run_shard.result_lines import places
from nightmill.storage import payloads, settlement
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.settlement import Arrival, FailedItem
from nightmill.validators.checker import Checker

SPARE_LINES = 100_000  # beyond ten for each request: what a file may hold, and what memory is for
_Told = Answer | Embedding | LineError


class ResultReader:
    """Reads the result files of one provider batch. `seen` are ordinals that are in the ledger already; where
    `give_up_none`, no failure is final."""

    def __init__(self, context: ShardContext, one: ProviderBatch, seen: set[int], *, give_up_none: bool) -> None:
        self._context = context
        self._batch = one
        self._checker = Checker(context.pinned)
        self._seen = seen
        self._give_up_none = give_up_none
        self._earlier: dict[int, FailedItem] | None = None
        self._known = frozenset(one.carries())
        self._odd: Counter[str] = Counter()
        self.lines = 0  # of the files that were read so far, whatever they hold

    def oddities(self) -> str:
        """What was passed over, for the log line; empty when nothing was."""
        return "".join(f", {count} {what}" for what, count in sorted(self._odd.items()))

    def again(self) -> ResultReader:
        """The same reader for files that were read before: what it passes over is not odd a second time."""
        other = copy(self)
        other._odd = Counter()
        other.lines = 0
        return other

    def missing(self) -> list[int]:
        """Items that no line answered, once all files were read."""
        return sorted(self._known - self._seen)

    def arrivals(self, path: Path) -> Iterator[Arrival]:
        """One arrival per item that this file answers for the first time."""
        context = self._context
        documents = payloads.Documents(context.conn, context.env.payloads, context.batch.batch_id)
        for ordinal, line in self._one_per_item(context.provider.read_lines(self._in_item_order(path))):
            self._seen.add(ordinal)
            yield self._arrival(ordinal, line, documents.of(ordinal) if self._checker.needs_payload else {})

    def _one_per_item(self, lines: Iterator[ResultLine]) -> Iterator[tuple[int, _Told]]:
        """What the lines of one file say about each item; lines of one item stand together."""
        held: tuple[int, _Told] | None = None
        for line in lines:
            ordinal = self._ordinal(line)
            if ordinal is None or isinstance(line, Unreadable):
                continue
            if held is not None and held[0] == ordinal:
                held = ordinal, self._one_of(held[1], line)
                continue
            if held is not None:
                yield held
            held = ordinal, line
        if held is not None:
            yield held

    def _one_of(self, first: _Told, second: _Told) -> _Told:
        """What two lines of one item come to: an answer counts more than an error, and two answers that differ are
        none. The raw file is kept, so a person can look at both."""
        errors = [isinstance(one, LineError) for one in (first, second)]
        if first == second or any(errors):
            self._odd["repeated lines"] += 1
            return second if errors == [True, False] else first
        self._odd["conflicting lines"] += 1
        return LineError(first.custom_id, 200, CONFLICTING_LINES, "two answers that differ", first.usage)

    def _ordinal(self, line: ResultLine) -> int | None:
        """The item of a line that counts, or None for an unreadable, foreign or repeated one."""
        if isinstance(line, Unreadable):
            self._odd["unreadable lines"] += 1
            return None
        ordinal = ordinal_of(self._batch.token, line.custom_id)
        if ordinal is None or ordinal not in self._known:
            self._odd["foreign lines"] += 1
            return None
        if ordinal in self._seen:
            self._odd["repeated lines"] += 1
            return None
        return ordinal

    def _arrival(self, ordinal: int, line: _Told, document: dict[str, Any]) -> Arrival:
        usage = line.usage
        model = finish_reason = None
        if isinstance(line, LineError):
            verdict: Verdict = classify_line_error(line.status, line.code, line.message, line.type)
        elif isinstance(line, Embedding):
            model = line.model
            verdict = self._checker.check_vector(line.vector)
        else:
            model, finish_reason = line.model, line.finish_reason
            verdict = self._checker.check_message(line.finish_reason, line.refusal, line.text, document)
        accepted = verdict if isinstance(verdict, Accepted) else None
        return Arrival(
            ordinal=ordinal,
            failure=verdict if isinstance(verdict, Failure) else None,
            answer=accepted.answer if accepted else None,
            notes=accepted.notes if accepted else (),
            citations=accepted.citations if accepted else (),
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            model=model,
            finish_reason=finish_reason,
            sent_upstream=not (isinstance(line, LineError) and line.code in NEVER_EXECUTED),
            retryable=self._retryable(ordinal, verdict),
        )

    def _retryable(self, ordinal: int, verdict: Verdict) -> bool | None:
        """Whether another attempt can help, where the failure's class alone does not say it."""
        if isinstance(verdict, Accepted):
            return None
        if self._give_up_none:
            return True
        if not is_truncation(verdict.kind, verdict.code):
            return None
        if self._earlier is None:
            self._earlier = settlement.failed_items(self._context.conn, self._batch.batch_id, self._batch.ordinals)
        cut = self._earlier[ordinal].truncations if ordinal in self._earlier else 0
        asked, live = self._context.pinned.job, self._context.live
        return output_reserve(asked, live, cut + 1) > output_reserve(asked, live, cut)

    def _in_item_order(self, path: Path) -> Iterator[bytes]:
        """Raw lines sorted by item; lines without a readable id come last."""
        most = SPARE_LINES + 10 * self._batch.requests
        found = sorted(islice(places(path, self._batch.token), most + 1))
        if len(found) > most:
            raise AnswerTooLarge(
                f"A result file of provider batch {self._batch.provider_batch_id} ({self._batch.provider_id}) has more "
                f"than {most:,} lines for {self._batch.requests:,} requests.",
                "It is kept as evidence. Ask the provider what it is; clear this task to fetch it again, or cancel "
                "this batch.",
            )
        self.lines += len(found)
        if not found:
            return
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            for _, offset, length in found:
                line = content[offset : offset + length].rstrip(b"\r\n")
                yield line.removeprefix(BOM) if offset == 0 else line
